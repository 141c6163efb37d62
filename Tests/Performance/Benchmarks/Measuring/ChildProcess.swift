import Foundation

/// The runner of measurements, each in a new process of this program.
struct ChildProcess {
  /// The last argument of a process that must end with its parent.
  static let watched = "until-stdin-ends"

  private let folder: URL

  /// - Parameter folder: The folder for the output of running processes.
  init(folder: URL) { self.folder = folder }

  /// Returns the path of a temporary file for a measuring process.
  func scratch(_ name: String) -> URL { folder.appending(path: name) }

  /// Runs a job in a new process. A crash, a timeout and unexpected output are recorded as failures of the measurement.
  func run<Work: Job>(_ job: Work, limit: Duration = .seconds(120)) async throws -> Measurement {
    let output = scratch("output")
    let complaints = scratch("complaints")
    for file in [output, complaints] { try Data().write(to: file) }
    let process = Process()
    process.executableURL = Self.program
    process.arguments = ["measure", Work.name, String(decoding: try JSONEncoder().encode(job), as: UTF8.self), Self.watched]
    // The system closes the other end when this process ends, even after a crash.
    process.standardInput = Pipe()
    process.standardOutput = try FileHandle(forWritingTo: output)
    process.standardError = try FileHandle(forWritingTo: complaints)
    let isLate = try await Self.finish(process, limit: limit)
    let words = String(decoding: try Data(contentsOf: complaints), as: UTF8.self)
    var measurement = Measurement()
    if isLate {
      measurement.failures.append("\(Work.name): not finished within \(limit)")
    } else if let line = try Self.lastLine(of: output), let read = try? JSONDecoder().decode(Measurement.self, from: line) {
      measurement = read
    } else {
      measurement.failures.append("\(Work.name): exited with status \(process.terminationStatus) and printed no measurement")
    }
    // The runtime prints this for a continuation that is never resumed, or resumed twice.
    if words.contains("CONTINUATION MISUSE") {
      measurement.failures.append("\(Work.name): a continuation was leaked or used twice")
    }
    if !measurement.failures.isEmpty, !words.isEmpty { FileHandle.standardError.write(Data(words.utf8)) }
    return measurement
  }

  /// Returns the number of instructions of a process that runs a job, counted by valgrind.
  func instructions(of job: some Job, limit: Duration = .seconds(300)) async throws -> Double {
    let complaints = scratch("complaints")
    try Data().write(to: complaints)
    // valgrind cannot read the debug information of every compiler, so it gets a stripped copy.
    let program = scratch("stripped")
    let strip = Process()
    (strip.executableURL, strip.arguments) = (URL(filePath: "/usr/bin/env"), ["strip", "-o", program.path, Self.program.path])
    guard try await !Self.finish(strip, limit: limit), strip.terminationStatus == 0 else {
      throw BenchmarkFailure("cannot strip '\(Self.program.path)'")
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
    else { throw BenchmarkFailure("valgrind printed no count: \(words)") }
    return count
  }

  /// Runs another program and returns its output.
  func output(_ program: String, _ arguments: [String], limit: Duration = .seconds(120)) async throws -> String {
    let output = scratch("output")
    try Data().write(to: output)
    let process = Process()
    process.executableURL = URL(filePath: "/usr/bin/env")
    process.arguments = [program] + arguments
    process.standardInput = FileHandle.nullDevice
    process.standardOutput = try FileHandle(forWritingTo: output)
    process.standardError = FileHandle.nullDevice
    if try await Self.finish(process, limit: limit) { throw BenchmarkFailure("\(program) did not finish within \(limit)") }
    return String(decoding: try Data(contentsOf: output), as: UTF8.self)
  }

  private static var program: URL {
    Bundle.main.executableURL ?? URL(filePath: CommandLine.arguments[0])
  }

  /// - Returns: `true` if the process exceeded the limit and was killed.
  private static func finish(_ process: Process, limit: Duration) async throws -> Bool {
    let (ends, continuation) = AsyncStream.makeStream(of: Void.self)
    process.terminationHandler = { _ in continuation.finish() }
    try process.run()
    let identifier = process.processIdentifier
    let kills = AtomicCounter()
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

  /// Ends this process when its standard input ends, which happens when its parent has ended.
  static func endWithStarter() {
    Thread.detachNewThread {
      var byte: UInt8 = 0
      while read(STDIN_FILENO, &byte, 1) > 0 {}
      _exit(1)
    }
  }
}
