#if Redis
import Foundation
import LoopbackOrigin

/// A server on a free loopback port, with its files in a temporary folder.
final class RedisProcess {
  let port: Int
  private let child: ChildProcess
  private let process = Process()
  private let reservation: ReservedPort

  init(_ child: ChildProcess) async throws {
    self.child = child
    let folder = child.scratch("redis")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    reservation = try ReservedPort()
    port = reservation.number
    process.executableURL = URL(filePath: "/usr/bin/env")
    process.arguments =
      ["redis-server", "--port", "\(port)", "--bind", "127.0.0.1", "--save", "", "--dir", folder.path, "--daemonize", "no"]
    process.standardInput = FileHandle.nullDevice
    process.standardOutput = FileHandle.nullDevice
    process.standardError = FileHandle.nullDevice
    try process.run()
    for _ in 0..<200 {
      if try await child.output("redis-cli", ["-p", "\(port)", "ping"]).contains("PONG") { return }
      try await Task.sleep(for: .milliseconds(50))
    }
    throw BenchmarkFailure("the Redis server did not start")
  }

  deinit { stop() }

  /// Ends the server. It inherits the signal mask of the thread that started it, so it may not receive `SIGTERM`.
  func stop() { if process.isRunning { kill(process.processIdentifier, SIGKILL) } }

  /// Returns the rate of `GET` in redis-benchmark, which drives hiredis from an event loop.
  func requestsPerSecond(size: Int, connections: Int, pipelined: Int, count: Int) async throws -> Double {
    let text = try await child.output(
      "redis-benchmark",
      [
        "-p", "\(port)", "-t", "set,get", "-r", "\(connections * pipelined)", "-d", "\(size)",
        "-c", "\(connections)", "-P", "\(pipelined)", "-n", "\(count)", "--csv",
      ])
    // "GET","34246.57","1.2",…
    let line = text.split(separator: "\n").first { $0.hasPrefix("\"GET\"") }
    guard let line, let rate = Double(line.split(separator: ",")[1].dropFirst().dropLast()) else {
      throw BenchmarkFailure("redis-benchmark printed no rate: \(text)")
    }
    return rate
  }
}
#endif
