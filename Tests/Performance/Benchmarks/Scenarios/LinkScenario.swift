#if Origin
import Foundation

/// The time of loads over a slow link against the link's minimum, also with a broken connection.
struct LinkScenario {
  let bench: Bench

  private struct Way: Hashable, Sendable {
    let engine: Engine
    let isTogether: Bool
    let repair: LinkJob.Repair

    var name: String {
      let order = isTogether ? "together" : "one by one"
      switch repair {
      case .nothing: return "\(engine.name), \(order)"
      case .again: return "\(engine.name), \(order), third cut at 50 %, caller loads again"
      case .retrying: return "\(engine.name), \(order), third cut at 50 %, retrying"
      case .resuming: return "\(engine.name), \(order), third cut at 50 %, resuming"
      }
    }

    /// The goal as a multiple of the link's minimum.
    var goal: Double? {
      switch repair {
      case .nothing: 1.03
      case .again, .retrying: nil
      case .resuming: 1.05
      }
    }
  }

  func run() async throws -> ScenarioReport {
    let rounds = bench.settings.rounds ?? 1
    let allowed = LinkJob.allowed / .seconds(1)
    var report = ScenarioReport(
      "link",
      "photographs of 0.12, 0.30 and 1.11 MB over 2 Mbit/s and 5 ms each way, at least \(Text.decimal(allowed, 2)) s, \(rounds) rounds"
    )
    let ways = Engine.allCases.flatMap { engine in
      [(true, LinkJob.Repair.nothing), (false, .nothing), (false, .again), (false, .retrying), (false, .resuming)]
        .map { Way(engine: engine, isTogether: $0, repair: $1) }
    }
    let measured = try await bench.rounds(ways, count: rounds) {
      LinkJob(engine: $0.engine, isTogether: $0.isTogether, repair: $0.repair)
    }
    for way in ways {
      let own = measured[way] ?? []
      report.take(failuresOf: own, by: way.name)
      let walls = own.flatMap { $0[.wall] }
      report.rows.append(
        .init(
          name: way.name,
          figures: [
            Figure("time", .seconds, walls),
            Figure("time / minimum", .ratio, walls.map { $0 / allowed }, peer: "the link's minimum"),
            Figure("requests", .count, own.flatMap { $0[.requests] }),
          ].compactMap(\.self)))
      if let goal = way.goal, !walls.isEmpty {
        report.goals.append(Goal("\(way.name): time, against the link's minimum", Sample.median(walls) / allowed, .atMost(goal)))
      }
    }
    return report
  }
}
#endif
