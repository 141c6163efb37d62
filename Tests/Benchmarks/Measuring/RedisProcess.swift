#if Redis && Origin
import Foundation
import LocalRedis

/// A server that stores nothing on disk, and its own benchmark.
final class RedisProcess {
  private let child: ChildProcess
  private let server: RedisServer

  init(_ child: ChildProcess) async throws {
    self.child = child
    server = try await RedisServer(hasPort: true)
  }

  var port: Int { server.portNumber }

  func stop() { server.kill() }

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
