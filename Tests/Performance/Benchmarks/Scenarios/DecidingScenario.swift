/// The cost of the validator's decisions, for responses with few and with many fields.
struct DecidingScenario {
  let bench: Bench

  private struct Way: Hashable, Sendable {
    let decision: DecidingJob.Decision
    let fields: Int
    let isShared: Bool

    var name: String { "\(decision.title), \(fields) fields\(isShared ? ", shared cache" : "")" }
    /// The goal in microseconds.
    var goal: Double? {
      switch decision {
      case .hit: 2
      case .freshness, .store: fields == 15 ? 10 : nil
      case .miss, .reply, .freshen, .pass: nil
      }
    }
  }

  private static let repetitions = 20_000

  func run() async throws -> ScenarioReport {
    let rounds = bench.settings.rounds ?? 5
    var report = ScenarioReport(
      "deciding",
      "\(Self.repetitions) repetitions of each decision of ETagValidator, \(rounds) rounds: processor time of one, median (least–most)"
    )
    var ways: [Way] = []
    for decision in DecidingJob.Decision.allCases {
      ways += [8, 15, 100].map { Way(decision: decision, fields: $0, isShared: false) }
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
      row.figures = [Figure("processor time", .microseconds, times)].compactMap(\.self)
      report.rows.append(row)
      guard let goal = way.goal, !times.isEmpty else { continue }
      report.goals.append(Goal("\(way.name): processor time", Sample.median(times), .atMost(goal), .microseconds))
    }
    return report
  }
}

extension DecidingJob.Decision {
  fileprivate var title: String {
    switch self {
    case .miss: "find no response"
    case .hit: "find a fresh response"
    case .reply: "make its head"
    case .freshness: "read a response's freshness"
    case .store: "make stored metadata"
    case .freshen: "update metadata from a 304"
    case .pass: "pass a 404"
    }
  }
}
