/// What the validator's decisions cost, and whether they cost more when an answer has more fields.
struct DecidingScenario {
  let bench: Bench

  private struct Way: Hashable, Sendable {
    let decision: DecidingJob.Decision
    let fields: Int
    let isShared: Bool

    var name: String { "\(decision.rawValue), \(fields) fields\(isShared ? ", shared" : "")" }
    /// Microseconds.
    var goal: Double? {
      switch decision {
      case .hit: 2
      case .freshness, .store: fields == 15 ? 10 : nil
      case .reply, .freshen: nil
      }
    }
  }

  private static let repetitions = 20_000

  func run() async throws -> ScenarioReport {
    let rounds = bench.settings.rounds ?? 5
    var report = ScenarioReport(
      "deciding",
      "\(Self.repetitions) times each decision of the validator, in a row, \(rounds) rounds: processor time of one, median (least–most)"
    )
    var ways: [Way] = []
    for decision in DecidingJob.Decision.allCases {
      ways += [15, 100].map { Way(decision: decision, fields: $0, isShared: false) }
      ways.append(Way(decision: decision, fields: 15, isShared: true))
    }
    let measured = try await bench.rounds(ways, count: rounds) {
      DecidingJob(decision: $0.decision, fields: $0.fields, isShared: $0.isShared, repetitions: Self.repetitions)
    }
    for way in ways {
      let own = measured[way] ?? []
      report.take(failuresOf: own, by: way.name)
      let times = own.flatMap { $0[.processor] }.map { $0 * 1e6 / Double(Self.repetitions) }
      var row = ScenarioReport.Row(name: way.name)
      row.figures = [Figure("each", .microseconds, times)].compactMap(\.self)
      report.rows.append(row)
      guard let goal = way.goal, !times.isEmpty else { continue }
      report.goals.append(Goal(way.name, Sample.median(times), .atMost(goal), .microseconds))
    }
    return report
  }
}
