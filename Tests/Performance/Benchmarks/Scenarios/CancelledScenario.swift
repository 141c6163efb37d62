#if Origin
import Foundation

/// The memory that a process holds after cancelled loads with `URLSession`.
struct CancelledScenario {
  let bench: Bench

  private let layers: [ClientKind.Layer] = [.bare, .manager]

  func run() async throws -> ScenarioReport {
    let rounds = bench.settings.rounds ?? 5
    var report = ScenarioReport("cancelled", "20 × 500 loads, all cancelled, \(rounds) rounds: median (least–most)")
    let measured = try await bench.rounds(layers, count: rounds) { CancelledJob(layer: $0, loads: 500, rounds: 20) }
    for layer in layers {
      let own = measured[layer] ?? []
      let name = ClientKind(engine: .session, layer: layer).name
      report.take(failuresOf: own, by: name)
      report.rows.append(
        .init(
          name: name,
          figures: [
            Figure("cancelled", .count, own.flatMap { $0[.cancelled] }),
            Figure("resident memory afterwards", .megabytes, own.flatMap { $0[.resident] }.map { $0 / 1e6 }),
          ].compactMap(\.self)))
    }
    let (bare, whole) = (measured[.bare] ?? [], measured[.manager] ?? [])
    let ratios = zip(whole.flatMap { $0[.resident] }, bare.flatMap { $0[.resident] }).map { $0 / $1 }
    if !ratios.isEmpty {
      report.goals.append(
        Goal("resident memory after cancelled loads, against URLSession alone", Sample.median(ratios), .atMost(1.25)))
    }
    return report
  }
}
#endif
