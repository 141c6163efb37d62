#if Origin
import Foundation

/// The cost of the engines and the manager for a small resource, against the library below them.
struct SmallScenario {
  let bench: Bench

  private let requests = 1_000
  private let size = 20_000
  private let parallel = 6

  func run() async throws -> ScenarioReport {
    let rounds = bench.settings.rounds ?? 9
    var report = ScenarioReport(
      "small", "\(requests) × \(size / 1_000) KB from nginx, \(parallel) at a time, \(rounds) rounds of 3: median (least–most)")
    try bench.serve("small.bin", bytes: size)
    let url = try bench.address("small.bin")
    for engine in Engine.allCases {
      let kinds = [ClientKind.Layer.bare, .bareWithDictionary, .engine, .manager, .managerWithoutStore].map {
        ClientKind(engine: engine, layer: $0)
      }
      let measured = try await bench.rounds(kinds, count: rounds) {
        SmallJob(client: $0, url: url, size: size, requests: requests, parallel: parallel, batches: 3)
      }
      compare(kinds, measured, engine, &report)
    }
    return report
  }

  private func compare(
    _ kinds: [ClientKind], _ measured: [ClientKind: [Measurement]], _ engine: Engine, _ report: inout ScenarioReport
  ) {
    for kind in kinds {
      let own = measured[kind] ?? []
      report.take(failuresOf: own, by: kind.name)
      var row = ScenarioReport.Row(name: kind.name)
      row.figures = [
        Figure("requests", .perSecond, own.flatMap { $0[.wall] }.map { Double(requests) / $0 }),
        Figure("processor time per request", .microseconds, own.flatMap { $0[.processor] }.map { $0 * 1e6 / Double(requests) }),
      ].compactMap(\.self)
      for peer in peers(of: kind.layer).map({ ClientKind(engine: engine, layer: $0) }) {
        // Ratios are taken per round, because other work of the machine affects both sides of a round.
        let rounds = zip(own, measured[peer] ?? [])
        let rates = rounds.map { Sample.median($1[.wall]) / Sample.median($0[.wall]) }
        let costs = rounds.map { Sample.median($0[.processor]) / Sample.median($1[.processor]) }
        let name = peer.layer == .bare ? "peer" : "peer with a dictionary"
        row.figures += [
          Figure("rate / \(name)", .ratio, rates, peer: peer.name),
          Figure("processor time / \(name)", .ratio, costs, peer: peer.name),
        ].compactMap(\.self)
        if peer.layer == .bare { addGoals(kind, rate: Sample.median(rates), cost: Sample.median(costs), &report) }
      }
      report.rows.append(row)
    }
  }

  /// The clients without this package that a layer is compared with. A dictionary does the work of the memory store.
  private func peers(of layer: ClientKind.Layer) -> [ClientKind.Layer] {
    switch layer {
    case .bare, .bareWithDictionary: []
    case .engine, .managerWithoutStore: [.bare]
    case .manager: [.bare, .bareWithDictionary]
    }
  }

  private func addGoals(_ kind: ClientKind, rate: Double, cost: Double, _ report: inout ScenarioReport) {
    guard rate > 0 else { return }
    let (leastRate, mostCost): (Double, Double?) =
      switch (kind.engine, kind.layer) {
      #if AsyncHTTP
      case (.asyncHTTP, .managerWithoutStore): (0.9, 1.15)
      case (.asyncHTTP, _): (0.85, 1.25)
      #endif
      case (.session, .engine): (0.9, nil)
      case (.session, _): (0.95, nil)
      }
    report.goals.append(Goal("\(kind.name): requests per second, against \(kind.engine.peer)", rate, .atLeast(leastRate)))
    if let mostCost {
      report.goals.append(Goal("\(kind.name): processor time, against \(kind.engine.peer)", cost, .atMost(mostCost)))
    }
  }
}
#endif
