import Foundation

/// Runs the scenarios and prints their reports.
///
/// `measure` runs one measurement and prints it as JSON. `pattern` writes a file with the bytes that measurements expect.
/// `replay` prints the hit ratios of a recorded trace.
@main
struct Benchmarks {
  /// Keeps the main thread, which runs the main actor's code. An asynchronous `main` would end that thread, and valgrind crashes
  /// when it ends.
  static func main() {
    Task.detached { await run() }
    // A run loop without a timer returns at once.
    RunLoop.main.add(Timer(timeInterval: 3_600, repeats: true) { _ in }, forMode: .default)
    while true { RunLoop.main.run() }
  }

  private static func run() async {
    var arguments = Array(CommandLine.arguments.dropFirst())
    do {
      if arguments.first == "measure" {
        arguments.removeFirst()
        if arguments.last == ChildProcess.watched { ChildProcess.endWithStarter() }
        let measurement = try await Jobs.run(arguments)
        say(String(decoding: try JSONEncoder().encode(measurement), as: UTF8.self))
      } else if arguments.first == "pattern", arguments.count == 3, let count = Int(arguments[2]) {
        try Pattern.write(count, to: URL(filePath: arguments[1]))
      } else if arguments.first == "replay" {
        say(try Replay(Array(arguments.dropFirst())).run())
      } else {
        try await run(Settings(arguments))
      }
    } catch {
      FileHandle.standardError.write(Data("\(error)\n".utf8))
      exit(1)
    }
    exit(0)
  }

  /// Writes without a buffer, so that a run of minutes shows its progress through a pipe too.
  private static func say(_ line: String) { FileHandle.standardOutput.write(Data((line + "\n").utf8)) }

  private static func run(_ settings: Settings) async throws {
    let folder = FileManager.default.temporaryDirectory.appending(path: "etagere-bench-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    let bench = Bench(settings: settings, child: ChildProcess(folder: folder))
    var report = Report(versions: settings.versions)
    for scenario in settings.scenarios {
      let found = try await scenario.run(bench)
      settings.endProgress()
      say(found.text + "\n")
      report.scenarios.append(found)
      // After each scenario, so that an interrupted run leaves its results.
      if let file = settings.json { try report.json().write(to: file) }
    }
    let goals = report.scenarios.flatMap(\.goals)
    say("\(goals.count { $0.isReached }) of \(goals.count) goals reached, \(report.failures.count) checks failed")
    if !report.failures.isEmpty { throw BenchmarkFailure("a check failed") }
  }
}
