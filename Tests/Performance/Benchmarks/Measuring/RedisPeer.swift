#if Redis
/// The Redis server of the script, and its own benchmark.
struct RedisPeer {
  let port: Int
  private let child: ChildProcess

  init(_ bench: Bench) throws {
    guard let port = bench.settings.redis else { throw BenchmarkFailure("this scenario needs --redis") }
    (self.port, child) = (port, bench.child)
  }

  func removeAll() async throws {
    let reply = try await child.output("redis-cli", ["-p", "\(port)", "flushall"])
    guard reply == "OK\n" else { throw BenchmarkFailure("the Redis server is not empty: \(reply)") }
  }

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
