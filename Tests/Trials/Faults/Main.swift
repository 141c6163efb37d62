import Foundation

/// Runs the fault trials, which break the environment of a store and check its guarantees. With `child`, runs one of the
/// processes that are killed or share a folder.
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
        let findings = try await suite.run(
          Trial(
            seed: settings.seed, isQuick: settings.isQuick, seconds: settings.seconds, workers: settings.workers,
            csv: settings.csv, folder: folder,
            report: { line in
              if settings.isVerbose { say("  \((Date().timeIntervalSince(start) * 10).rounded() / 10) s: \(line)") }
            }, print: { say("  \($0)") }))
        for finding in findings { say("  \(finding)") }
      } catch {
        // The folder is kept as evidence.
        say("  FAILED: \(error)")
        let length =
          (settings.isQuick ? " --quick" : "") + (settings.seconds.map { " --seconds \($0)" } ?? "")
          + (settings.workers.map { " --workers \($0)" } ?? "")
        let command = suite == .soak ? "Scripts/soak" : "Scripts/faults"
        say("  repeat with: \(command) --seed \(settings.seed)\(length)\(suite == .soak ? "" : " \(suite.rawValue)")")
        say("  folder: \(folder)")
        throw FailedCheck("a guarantee was broken")
      }
      try? FileManager.default.removeItem(atPath: folder)
      say("  passed in \(Int(Date().timeIntervalSince(start).rounded())) s")
    }
  }

  /// Prints a line unbuffered, also into a pipe, so that a run of minutes shows its progress.
  private static func say(_ line: String) { FileHandle.standardOutput.write(Data((line + "\n").utf8)) }
}
