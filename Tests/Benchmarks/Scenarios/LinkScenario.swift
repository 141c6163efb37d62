#if Origin
import Foundation

/// How near the loads come to what a slow link allows, also when a connection breaks.
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
      case .again: return "\(engine.name), \(order), third cut at 50 %, the caller asks again"
      case .retrying: return "\(engine.name), \(order), third cut at 50 %, retrying"
      case .resuming: return "\(engine.name), \(order), third cut at 50 %, resuming"
      }
    }

    /// The most that it may take, in times of what the link allows.
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
      "photographs of 0.12, 0.30 and 1.11 MB over 2 Mbit/s and 5 ms, which allow \(Text.decimal(allowed, 2)) s, \(rounds) rounds")
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
            Figure("time", .seconds, walls), Figure("against the link", .ratio, walls.map { $0 / allowed }),
            Figure("requests", .count, own.flatMap { $0[.requests] }),
          ].compactMap(\.self)))
      if let goal = way.goal, !walls.isEmpty {
        report.goals.append(Goal("\(way.name), against the link", Sample.median(walls) / allowed, .atMost(goal)))
      }
    }
    return report
  }
}
#endif
