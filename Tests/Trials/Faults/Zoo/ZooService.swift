#if Service
import AsyncHTTPNetworking
import CacheCore
import Foundation
import HTTPTypes

/// `etagere-cli serve` in a process of its own, with a folder of sources.
final class ZooService: Sendable {
  /// The end of a process.
  struct End: Sendable, CustomStringConvertible {
    var status: Int32
    var isSignal: Bool
    /// The last lines of standard error.
    var lines: [String]

    var description: String {
      let last = lines.isEmpty ? "" : ": \(lines.joined(separator: " | "))"
      return (isSignal ? "signal \(status)" : "status \(status)") + last
    }
  }

  /// A response, or the reason why there is none.
  enum Reply: Sendable {
    case response(status: Int, type: String, data: Data)
    case none(String)
  }

  static let address = "127.0.0.1"
  /// The time in which a process without requests ends after SIGTERM.
  static let endingTime = Duration.seconds(10)

  private let process: Process
  private let errors: String
  /// The file with the process's number.
  private let number: String
  private let base: String
  private let metrics: String
  private let downloader: AsyncHTTPDownloader

  var pid: pid_t { process.processIdentifier }
  var isRunning: Bool { process.isRunning }

  /// Starts the process and waits until it listens.
  ///
  /// - Parameters:
  ///   - program: The path of `etagere-cli`.
  ///   - folder: The folder of the process's files. The sources are in the folder `sources` in it.
  ///   - key: A signing key in hexadecimal.
  ///   - arguments: Further arguments.
  ///   - idleTimeout: The time without bytes after which a request fails.
  init(
    _ program: String, in folder: String, key: String, arguments: [String],
    idleTimeout: Duration = .seconds(ZooLimits.timeout + 10)
  ) async throws {
    downloader = try AsyncHTTPDownloader(
      configuration: .init {
        // A request that is sent again would hide the end of the process.
        $0.resendsLostRequests = false
        $0.connectionsPerHost = 32
        $0.idleTimeout = idleTimeout
      })
    errors = "\(folder)/errors-\(UUID().uuidString)"
    number = "\(folder)/pid"
    let keys = "\(folder)/keys"
    for (path, text) in [(errors, ""), (keys, key + "\n")] {
      let isWritten = FileManager.default.createFile(
        atPath: path, contents: Data(text.utf8), attributes: [.posixPermissions: 0o600])
      try require(isWritten, "cannot write \(path)")
    }
    process = Process()
    process.executableURL = URL(filePath: program)
    process.arguments =
      ["serve", "--listen", "\(Self.address):0", "--admin", "\(Self.address):0", "--keys-file", keys]
      + ["--folder", "zoo=\(folder)/sources", "--access-log", "false", "--drain-time", "0"]
      // The other programs of the machine must not decide which files reach their time limit.
      + ["--worker-priority", "normal"] + arguments
    process.standardError = try FileHandle(forWritingTo: URL(filePath: errors))
    process.standardOutput = FileHandle.nullDevice
    process.standardInput = FileHandle.nullDevice
    // A crash must not wait for the backtracer of Swift.
    process.environment = ProcessInfo.processInfo.environment.merging(["SWIFT_BACKTRACE": "enable=no"]) { $1 }
    try process.run()
    // Scripts/faults ends the process if this one is killed.
    try Data("\(process.processIdentifier)\n".utf8).write(to: URL(filePath: number))
    let (process, errors) = (process, errors)
    func address(_ start: String) -> String? {
      Self.lines(errors).first { $0.hasPrefix(start) }.map { String($0.dropFirst(start.count)) }
    }
    let end = ContinuousClock.now + .seconds(60)
    while address("etagere-cli: listening on ") == nil || address("etagere-cli: metrics on ") == nil {
      guard process.isRunning, ContinuousClock.now < end else {
        if process.isRunning { kill(process.processIdentifier, SIGKILL) }
        throw FailedCheck("etagere-cli serve does not start: \(Self.lines(errors).joined(separator: " | "))")
      }
      try await Task.sleep(for: .milliseconds(10))
    }
    base = "http://\(address("etagere-cli: listening on ") ?? "")"
    metrics = address("etagere-cli: metrics on ") ?? ""
  }

  deinit { if process.isRunning { kill(process.processIdentifier, SIGKILL) } }

  private static func lines(_ path: String) -> [String] {
    let text = FileManager.default.contents(atPath: path).map { String(decoding: $0, as: UTF8.self) } ?? ""
    return text.split(separator: "\n").map(String.init)
  }

  /// Sends a request, and returns the response and the time until its last byte.
  func get(_ path: String) async -> (reply: Reply, time: Duration) {
    let clock = ContinuousClock()
    let start = clock.now
    guard let url = URL(string: path.hasPrefix("/") ? base + path : path) else { return (.none("invalid URL"), .zero) }
    do throws(CacheError) {
      let response = try await downloader.download(DownloadRequest(head: HTTPRequest(method: .get, url: url)))
      let data = try await response.body.collect()
      let type = response.head.headerFields[.contentType] ?? ""
      return (.response(status: response.head.status.code, type: type, data: data), clock.now - start)
    } catch {
      return (.none("\(error.code.rawValue): \(error.reason)"), clock.now - start)
    }
  }

  /// Returns the counters of the codec workers. A tool without worker processes has none.
  func codecFailures() async -> [String: Int] {
    guard case .response(200, _, let data) = await get(metrics).reply else { return [:] }
    var counts: [String: Int] = [:]
    for line in String(decoding: data, as: UTF8.self).split(separator: "\n") where line.hasPrefix("etagere_codec_") {
      let parts = line.split(separator: " ")
      guard parts.count == 2, let count = Int(parts[1]), count > 0 else { continue }
      counts[String(parts[0].dropFirst("etagere_codec_".count)).replacing("_", with: " ")] = count
    }
    return counts
  }

  /// Whether the process has ended. It waits a moment, because a connection is lost before the process has ended.
  var hasEnded: Bool {
    get async {
      for _ in 0..<20 where process.isRunning { try? await Task.sleep(for: .milliseconds(25)) }
      return !process.isRunning
    }
  }

  /// The end of the process, or `nil` while it runs.
  func end() async -> End? {
    guard await hasEnded else { return nil }
    // The tool's own lines say nothing about the end.
    let lines = Self.lines(errors).filter { !$0.hasPrefix("etagere-cli: ") }
    return End(
      status: process.terminationStatus, isSignal: process.terminationReason == .uncaughtSignal,
      lines: lines.suffix(3).map { String($0.prefix(200)) })
  }

  /// Ends the process with SIGTERM, and returns the time that this takes.
  ///
  /// - Parameter limit: The time for the requests in progress and the end.
  /// - Throws: `FailedCheck` if it does not end in time or with the status 0.
  func stop(within limit: Duration = endingTime) async throws -> Duration {
    let clock = ContinuousClock()
    let start = clock.now
    kill(pid, SIGTERM)
    while process.isRunning, clock.now - start < limit { try await Task.sleep(for: .milliseconds(5)) }
    let time = clock.now - start
    await downloader.close()
    forgetNumber()
    guard let end = await end() else {
      kill(pid, SIGKILL)
      throw FailedCheck("SIGTERM does not end the service within \(limit)")
    }
    try require(!end.isSignal && end.status == 0, "after SIGTERM the service ends with \(end)")
    return time
  }

  /// Kills the process and closes the connections to it.
  func destroy() async {
    kill(pid, SIGKILL)
    while process.isRunning { try? await Task.sleep(for: .milliseconds(5)) }
    await downloader.close()
    forgetNumber()
  }

  /// Removes the file with the process's number, which may belong to another process from now on.
  private func forgetNumber() { if !process.isRunning { try? FileManager.default.removeItem(atPath: number) } }

  /// Returns whether a tool has an option of `serve`.
  static func has(_ option: String, _ program: String) throws -> Bool {
    let child = try Child(["serve", "--help"], program: program)
    let lines = child.rest()
    child.end(kills: false)
    return lines.contains { $0.split(separator: " ").contains { $0 == option } }
  }
}
#endif
