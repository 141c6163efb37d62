#if Origin
import Foundation

/// The cost of many tasks that wait for one download.
struct WaitersScenario {
  let bench: Bench

  private let waiters = 10_000

  func run() async throws -> ScenarioReport {
    let rounds = bench.settings.rounds ?? 5
    var report = ScenarioReport(
      "waiters", "10,000 tasks load one resource of 20 KB that is not cached, \(rounds) rounds of 5: median (least–most)")
    let measured = try await bench.rounds(Engine.allCases, count: rounds) {
      WaitersJob(engine: $0, waiters: waiters, size: 20_000, batches: 5)
    }
    for engine in Engine.allCases {
      let own = measured[engine] ?? []
      report.take(failuresOf: own, by: engine.name)
      let ratios = own.flatMap { one in
        zip(one[.wall], zip(one[.hits], one[.download])).map { $0 / ($1.0 + $1.1) }
      }
      report.rows.append(
        .init(
          name: engine.name,
          figures: [
            Figure("requests", .count, own.flatMap { $0[.requests] }),
            Figure("all waiters", .milliseconds, own.flatMap { $0[.wall] }.map { $0 * 1e3 }),
            Figure("10,000 hits", .milliseconds, own.flatMap { $0[.hits] }.map { $0 * 1e3 }),
            Figure("one download", .milliseconds, own.flatMap { $0[.download] }.map { $0 * 1e3 }),
            Figure("10,000 hits in one task", .milliseconds, own.flatMap { $0[.hitsInTurn] }.map { $0 * 1e3 }),
            Figure("waiters / (hits + download)", .ratio, ratios, peer: "10,000 hits and one download"),
          ].compactMap(\.self)))
      guard !ratios.isEmpty else { continue }
      report.goals.append(
        Goal("\(engine.name), 10,000 waiters: time, against 10,000 hits and a download", Sample.median(ratios), .atMost(3)))
    }
    return report
  }
}
#endif
