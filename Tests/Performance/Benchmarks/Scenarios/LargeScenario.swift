#if Origin
import Foundation

/// The cost of the engines and the manager for a large body, in time and memory.
struct LargeScenario {
  let bench: Bench

  private struct Way: Hashable, Sendable {
    let client: ClientKind
    let target: LargeJob.Target
    let size: Int

    var name: String {
      switch (target, client.layer) {
      case (.nothing, _): "\(client.name), counted"
      case (.memory, _): "\(client.name), into memory"
      case (.file, .manager): "\(client.engine.name), load(to: file)"
      case (.file, _): "\(client.name), into a file"
      }
    }
  }

  private static let size = 200_000_000
  private static let hugeSize = 2_000_000_000
  /// The goal for the peak resident memory in MB of a process that loads a body into a file.
  private static let memoryGoal = 48.0

  func run() async throws -> ScenarioReport {
    let rounds = bench.settings.rounds.map { min($0, 20) } ?? 5
    var report = ScenarioReport("large", "one body of 200 MB from nginx, \(rounds) rounds: median (least–most)")
    try bench.serve("small.bin", bytes: 20_000)
    try bench.serve("large.bin", bytes: Self.size)
    for engine in Engine.allCases {
      for target in [LargeJob.Target.nothing, .memory, .file] {
        let layers: [ClientKind.Layer] =
          switch target {
          case .nothing: [.bare, .engine]
          case .memory: [.bare, .engine, .manager]
          case .file: [.bare, .engine] + ManagerClient.fileLayers
          }
        let ways = layers.map { Way(client: ClientKind(engine: engine, layer: $0), target: target, size: Self.size) }
        try await measure(ways, rounds: rounds, file: "large.bin", &report)
      }
    }
    if bench.settings.isHuge { try await huge(&report) }
    return report
  }

  /// Loads a body of ten times the size, which must not need more memory.
  private func huge(_ report: inout ScenarioReport) async throws {
    try bench.serve("huge.bin", bytes: Self.hugeSize)
    for engine in Engine.allCases {
      let layers = [ClientKind.Layer.bare, .engine] + ManagerClient.fileLayers
      let ways = layers.map { Way(client: ClientKind(engine: engine, layer: $0), target: .file, size: Self.hugeSize) }
      try await measure(ways, rounds: 1, file: "huge.bin", &report)
    }
  }

  private func measure(_ ways: [Way], rounds: Int, file: String, _ report: inout ScenarioReport) async throws {
    let (url, smallURL) = (try bench.address(file), try bench.address("small.bin"))
    let target = bench.child.scratch("body").path
    let measured = try await bench.rounds(ways, count: rounds, limit: .seconds(300)) {
      LargeJob(client: $0.client, target: $0.target, url: url, smallURL: smallURL, size: $0.size, file: target)
    }
    let peer = measured[ways[0]] ?? []
    for way in ways {
      let own = measured[way] ?? []
      let name = way.size == Self.size ? way.name : "\(way.name), 2 GB"
      // Without back-pressure, a slow disk makes the load fail by design, so this failure is only a remark.
      if way.size == Self.size || way.client.engine.hasBackPressure {
        report.take(failuresOf: own, by: name)
      } else {
        report.remarks += own.flatMap(\.failures).map { "\(name): \($0)" }
      }
      let rates = zip(own, peer).map { Sample.median($1[.wall]) / Sample.median($0[.wall]) }
      let peaks = own.flatMap { $0[.peakMemory] }.map { $0 / 1e6 }
      var row = ScenarioReport.Row(name: name)
      row.figures = [
        Figure("rate", .megabytesPerSecond, own.flatMap { $0[.wall] }.map { Double(way.size) / 1e6 / $0 }),
        Figure("processor time", .milliseconds, own.flatMap { $0[.processor] }.map { $0 * 1e3 }),
        Figure("peak memory", .megabytes, peaks),
      ].compactMap(\.self)
      if way != ways[0] { row.figures += [Figure("rate / peer", .ratio, rates, peer: way.client.engine.peer)].compactMap(\.self) }
      report.rows.append(row)
      guard way.client.layer != .bare, !own.isEmpty else { continue }
      if way.size == Self.size, way.target != .memory {
        report.goals.append(Goal("\(name): rate, against \(way.client.engine.peer)", Sample.median(rates), .atLeast(0.9)))
      }
      if way.target == .file, way.client.engine.hasBackPressure {
        report.goals.append(Goal("\(name): peak memory", Sample.median(peaks), .atMost(Self.memoryGoal), .megabytes))
      }
    }
  }
}

extension Engine {
  /// Whether the engine reads no faster than the reader of the body. Otherwise the memory depends on the speed of both sides.
  fileprivate var hasBackPressure: Bool {
    switch self {
    #if AsyncHTTP
    case .asyncHTTP: true
    #endif
    case .session: false
    }
  }
}
#endif
