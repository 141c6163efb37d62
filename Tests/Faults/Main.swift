import Foundation

/// Breaks what a store stands on and checks that it keeps its promises; with `child` is one of the processes that are killed, or
/// that share a folder.
@main
struct Faults {
  static func main() async {
    let arguments = Array(CommandLine.arguments.dropFirst())
    do {
      if arguments.first == "child" {
        try await Children.run(Array(arguments.dropFirst()))
      } else {
        try await run(Settings(arguments))
      }
    } catch {
      FileHandle.standardError.write(Data("\(error)\n".utf8))
      exit(1)
    }
    exit(0)
  }

  private static func run(_ settings: Settings) async throws {
    for suite in settings.suites {
      let start = Date()
      say("\(suite.rawValue): seed \(settings.seed)\(settings.isQuick ? ", quick" : "")")
      let folder = FileManager.default.temporaryDirectory.appending(path: "etagere-faults-\(UUID().uuidString)").path
      try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
      do {
        let findings = try await suite.run(Trial(seed: settings.seed, isQuick: settings.isQuick, folder: folder))
        for finding in findings { say("  \(finding)") }
      } catch {
        // What is there is evidence.
        say("  FAILED: \(error)")
        say("  again: Scripts/faults --seed \(settings.seed)\(settings.isQuick ? " --quick" : "") \(suite.rawValue)")
        say("  the folder as it was left: \(folder)")
        throw BrokenPromise("a promise was broken")
      }
      try? FileManager.default.removeItem(atPath: folder)
      say("  passed in \(Int(Date().timeIntervalSince(start).rounded())) s")
    }
  }

  /// At once, also into a pipe: who watches a run of minutes wants to see it.
  private static func say(_ line: String) { FileHandle.standardOutput.write(Data((line + "\n").utf8)) }
}
