#if Origin && AsyncHTTP
import Foundation

/// How near a screenful that is stale and unchanged comes to the round trips that it needs.
struct StaleScenario {
  let bench: Bench

  func run() async throws -> ScenarioReport {
    let rounds = bench.settings.rounds ?? 3
    var report = ScenarioReport(
      "stale",
      "\(StaleJob.resources) resources in memory, stale and unchanged, \(StaleJob.connections) warm connections, 5 ms each way: "
        + "\(StaleJob.roundTrips) round trips, \(rounds) rounds of 5")
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
            Figure("a bare round trip", .milliseconds, trips.map { $0 * 1000 }),
            Figure("against \(StaleJob.roundTrips) of them", .ratio, ratios),
          ].compactMap(\.self)))
      if !ratios.isEmpty {
        report.goals.append(Goal("\(name), against the round trips", Sample.median(ratios), .atMost(1.15)))
      }
    }
    return report
  }
}
#endif
