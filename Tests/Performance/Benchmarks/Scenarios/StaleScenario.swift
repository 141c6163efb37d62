#if Origin && AsyncHTTP
import Foundation

/// The time to revalidate a screen of unchanged resources, against the minimum number of round trips.
struct StaleScenario {
  let bench: Bench

  func run() async throws -> ScenarioReport {
    let rounds = bench.settings.rounds ?? 3
    var report = ScenarioReport(
      "stale",
      "\(StaleJob.resources) resources in memory, stale and unchanged, \(StaleJob.connections) open connections, 5 ms each way: "
        + "at least \(StaleJob.roundTrips) round trips, \(rounds) rounds of 5")
    let ways = [StaleJob.connections, StaleJob.resources]
    let measured = try await bench.rounds(ways, count: rounds) { StaleJob(parallel: $0, passes: 5) }
    for way in ways {
      let name = way == StaleJob.resources ? "AsyncHTTPNetworking, all at once" : "AsyncHTTPNetworking, \(way) at a time"
      let own = measured[way] ?? []
      report.take(failuresOf: own, by: name)
      let walls = own.flatMap { $0[.wall] }
      let trips = own.flatMap { $0[.roundTrip] }
      let ratios = zip(walls, trips).map { $0 / ($1 * Double(StaleJob.roundTrips)) }
      report.rows.append(
        .init(
          name: name,
          figures: [
            Figure("time", .milliseconds, walls.map { $0 * 1000 }),
            Figure("round trip of async-http-client", .milliseconds, trips.map { $0 * 1000 }),
            Figure("time / minimum", .ratio, ratios, peer: "\(StaleJob.roundTrips) round trips of async-http-client"),
          ].compactMap(\.self)))
      if !ratios.isEmpty {
        report.goals.append(
          Goal(
            "\(StaleJob.resources) resources revalidated, \(name): time, against \(StaleJob.roundTrips) round trips",
            Sample.median(ratios), .atMost(1.15)))
      }
    }
    return report
  }
}
#endif
