#if Origin
import Foundation

/// The check that loads end exactly once and release everything, whatever fails.
struct StormScenario {
  let bench: Bench

  private let loads = 10_000

  func run() async throws -> ScenarioReport {
    let rounds = bench.settings.rounds ?? 1
    var report = ScenarioReport(
      "storm", "10,000 loads, most of which fail, are cancelled or time out, \(rounds) rounds")
    for engine in Engine.allCases {
      var measured: [Measurement] = []
      for round in 0..<rounds {
        bench.settings.progress("round \(round + 1) of \(rounds): storm")
        measured.append(
          try await bench.child.run(
            StormJob(engine: engine, loads: loads, seed: UInt64(round + 1), parallel: 200, folder: bench.child.scratch("").path),
            limit: .seconds(300)))
      }
      report.take(failuresOf: measured, by: engine.name)
      func figure(_ name: String, _ unit: Figure.Unit, _ quantity: Measurement.Quantity) -> Figure? {
        Figure(name, unit, measured.flatMap { $0[quantity] })
      }
      report.rows.append(
        .init(
          name: engine.name,
          figures: [
            figure("time", .seconds, .wall), figure("processor time", .seconds, .processor), figure("values", .count, .succeeded),
            figure("errors", .count, .failed), figure("cancelled", .count, .cancelled), figure("stored", .count, .stored),
            figure("leaked descriptors", .count, .leakedDescriptors), figure("leaked loads", .count, .leakedLoads),
          ].compactMap(\.self)))
    }
    return report
  }
}
#endif
