#if Redis
import Foundation

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
    let server = try RedisPeer(bench)
    try await server.removeAll()
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
#endif
