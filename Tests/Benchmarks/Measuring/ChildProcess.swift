import Foundation

/// Runs this program again, for one measurement.
struct ChildProcess {
  /// The last argument of a process that must not outlive the one that started it.
  static let watched = "until-stdin-ends"

  private let folder: URL

  /// - Parameter folder: where what the processes say is kept while they run.
  init(folder: URL) { self.folder = folder }

  /// A file for a measuring process to write.
  func scratch(_ name: String) -> URL { folder.appending(path: name) }

  /// What the job has measured. A process that dies, hangs or says something else is a failure in the measurement.
  func run<Work: Job>(_ job: Work, limit: Duration = .seconds(120)) async throws -> Measurement {
    let output = scratch("output")
    let complaints = scratch("complaints")
    for file in [output, complaints] { try Data().write(to: file) }
    let process = Process()
    process.executableURL = Self.program
    process.arguments = ["measure", Work.name, String(decoding: try JSONEncoder().encode(job), as: UTF8.self), Self.watched]
    // Its other end closes with this process, whatever becomes of it.
    process.standardInput = Pipe()
    process.standardOutput = try FileHandle(forWritingTo: output)
    process.standardError = try FileHandle(forWritingTo: complaints)
    let isLate = try await Self.finish(process, limit: limit)
    let words = String(decoding: try Data(contentsOf: complaints), as: UTF8.self)
    var measurement = Measurement()
    if isLate {
      measurement.failures.append("\(Work.name): did not end within \(limit)")
    } else if let line = try Self.lastLine(of: output), let read = try? JSONDecoder().decode(Measurement.self, from: line) {
      measurement = read
    } else {
      measurement.failures.append("\(Work.name): ended with status \(process.terminationStatus) and no measurement")
    }
    // The runtime's words for a continuation that nobody resumed, or that was resumed twice.
    if words.contains("CONTINUATION MISUSE") {
      measurement.failures.append("\(Work.name): a continuation was leaked or used twice")
    }
    if !measurement.failures.isEmpty, !words.isEmpty { FileHandle.standardError.write(Data(words.utf8)) }
    return measurement
  }

  /// The instructions of a whole process that does a job, counted by valgrind.
  func instructions(of job: some Job, limit: Duration = .seconds(300)) async throws -> Double {
    let complaints = scratch("complaints")
    try Data().write(to: complaints)
    // valgrind cannot read the debug information of every compiler.
    let program = scratch("stripped")
    let strip = Process()
    (strip.executableURL, strip.arguments) = (URL(filePath: "/usr/bin/env"), ["strip", "-o", program.path, Self.program.path])
    guard try await !Self.finish(strip, limit: limit), strip.terminationStatus == 0 else {
      throw BenchmarkFailure("strip cannot copy \(Self.program.path)")
    }
    let process = Process()
    process.executableURL = URL(filePath: "/usr/bin/env")
    process.arguments =
      ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", program.path, "measure", type(of: job).name]
      + [String(decoding: try JSONEncoder().encode(job), as: UTF8.self), Self.watched]
    process.standardInput = Pipe()
    process.standardOutput = FileHandle.nullDevice
    process.standardError = try FileHandle(forWritingTo: complaints)
    let isLate = try await Self.finish(process, limit: limit)
    let words = String(decoding: try Data(contentsOf: complaints), as: UTF8.self)
    // "==42== Collected : 123456"
    guard !isLate, process.terminationStatus == 0,
      let line = words.split(separator: "\n").last(where: { $0.contains("Collected") }),
      let count = line.split(separator: " ").last.flatMap({ Double($0) })
    else { throw BenchmarkFailure("valgrind has counted nothing: \(words)") }
    return count
  }

  private static var program: URL {
    Bundle.main.executableURL ?? URL(filePath: CommandLine.arguments[0])
  }

  /// - Returns: whether it had to be killed.
  private static func finish(_ process: Process, limit: Duration) async throws -> Bool {
    let (ends, continuation) = AsyncStream.makeStream(of: Void.self)
    process.terminationHandler = { _ in continuation.finish() }
    try process.run()
    let identifier = process.processIdentifier
    let kills = Turn()
    return await withTaskGroup(of: Void.self) { group in
      group.addTask {
        guard (try? await Task.sleep(for: limit)) != nil else { return }
        kills.next()
        kill(identifier, SIGKILL)
      }
      for await _ in ends {}
      group.cancelAll()
      await group.waitForAll()
      return kills.value > 0
    }
  }

  private static func lastLine(of file: URL) throws -> Data? {
    try Data(contentsOf: file).split(separator: UInt8(ascii: "\n")).last.map { Data($0) }
  }

  /// Ends this process when its standard input ends, which is when the process that started it is gone.
  static func endWithStarter() {
    Thread.detachNewThread {
      var byte: UInt8 = 0
      while read(STDIN_FILENO, &byte, 1) > 0 {}
      _exit(1)
    }
  }
}
