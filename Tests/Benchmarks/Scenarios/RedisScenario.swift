#if Redis
import Foundation
import LoopbackOrigin

/// A store on a Redis server against the server's own benchmark.
struct RedisScenario {
  let bench: Bench

  private let connections = 2
  private let width = 64
  private let operations = 64_000

  func run() async throws -> ScenarioReport {
    let rounds = bench.settings.rounds ?? 5
    var report = ScenarioReport(
      "redis",
      "Hits of 20 KB on a Redis server, \(width) at once on \(connections) connections, and updates after a 304, \(rounds) rounds: "
        + "median (least–most)")
    let server = try await RedisProcess(bench.child)
    var peer: [Double] = []
    var own: [RedisJob.Work: [Measurement]] = [:]
    for round in 0..<rounds {
      bench.settings.progress("round \(round + 1) of \(rounds): redis-benchmark")
      peer.append(
        try await server.requestsPerSecond(
          size: 20_000, connections: connections, pipelined: width / connections, count: operations))
      for work in RedisJob.Work.allCases {
        bench.settings.progress("round \(round + 1) of \(rounds): \(work)")
        let isUpdate = work == .smallUpdates || work == .largeUpdates
        own[work, default: []].append(
          try await bench.child.run(
            RedisJob(
              work: work, port: server.port, connections: connections, width: isUpdate ? 1 : width,
              operations: isUpdate ? 5_000 : operations, batches: 1)))
      }
    }
    server.stop()

    report.rows.append(.init(name: "redis-benchmark", figures: [Figure("requests per second", .count, peer)].compactMap(\.self)))
    for (work, name, goal) in [(RedisJob.Work.hits, "RedisCache", 0.7), (.facadeHits, "ResourceManager on RedisCache", 0.5)] {
      let measured = own[work] ?? []
      report.take(failuresOf: measured, by: name)
      let rates = measured.compactMap { $0[.wall].first.map { Double(operations) / $0 } }
      let ratios = zip(rates, peer).map { $0 / $1 }
      report.rows.append(
        .init(
          name: name,
          figures: [
            Figure("requests per second", .count, rates),
            Figure("against redis-benchmark", .ratio, ratios, peer: "GET of redis-benchmark"),
            Figure(
              "processor time each", .microseconds,
              measured.compactMap { $0[.processor].first.map { $0 / Double(operations) * 1e6 } }),
          ].compactMap(\.self)))
      guard ratios.count == rounds else { continue }
      report.goals.append(
        Goal("\(name), hits of 20 KB: requests per second, against redis-benchmark", Sample.median(ratios), .atLeast(goal)))
    }
    let (small, large) = (own[.smallUpdates] ?? [], own[.largeUpdates] ?? [])
    report.take(failuresOf: small + large, by: "updates")
    let times = [small, large].map { $0.compactMap { $0[.wall].first.map { $0 / 5_000 * 1e6 } } }
    for (name, times) in zip(["304 for 4 KB", "304 for 1 MB"], times) {
      report.rows.append(.init(name: name, figures: [Figure("time each", .microseconds, times)].compactMap(\.self)))
    }
    let ratios = zip(times[1], times[0]).map { $0 / $1 }
    if !ratios.isEmpty {
      report.goals.append(Goal("a 304 for 1 MB: time, against one for 4 KB", Sample.median(ratios), .atMost(1.2)))
    }
    return report
  }
}

/// A server on a free loopback port, with its files in a temporary folder.
private final class RedisProcess {
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
