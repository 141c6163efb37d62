/// The cost of a hit through `ResourceManager`, and of its parts.
struct FacadeScenario {
  let bench: Bench

  func run() async throws -> ScenarioReport {
    let rounds = bench.settings.rounds ?? 3
    var report = ScenarioReport(
      "facade",
      "hits of 20 KB through ResourceManager; on disk also the parts of the work, \(rounds) rounds"
    )
    let measured = try await bench.rounds(FacadeJob.Hit.allCases, count: rounds) {
      FacadeJob(hit: $0, size: 20 << 10, entries: $0 == .disk ? 256 : 1_000, batches: 12)
    }
    for hit in FacadeJob.Hit.allCases {
      let found = measured[hit] ?? []
      report.take(failuresOf: found, by: hit.rawValue)
      if hit == .disk { addDisk(found, to: &report) } else { addMemory(hit, found, to: &report) }
    }
    try await addCold(to: &report)
    return report
  }

  /// Adds the allocations of a cold load. They do not vary between runs, so one run suffices.
  private func addCold(to report: inout ScenarioReport) async throws {
    let found = try await bench.rounds(["cold"], count: 1) { _ in ColdJob(size: 20 << 10, loads: 1_000) }["cold"] ?? []
    report.take(failuresOf: found, by: "a cold load")
    let allocations = found.flatMap { $0[.allocations] }
    var row = ScenarioReport.Row(name: "cold load, without the engine")
    row.figures = [Figure("allocations", .count, allocations)].compactMap(\.self)
    report.rows.append(row)
    guard !allocations.isEmpty else { return }
    report.goals.append(
      Goal("heap allocations of a cold load, without the engine's", Sample.median(allocations), .atMost(40), .count))
  }

  private func addMemory(_ hit: FacadeJob.Hit, _ found: [Measurement], to report: inout ScenarioReport) {
    let times = found.flatMap { $0[.nanosecondsEach] }
    let ratios = found.flatMap { zip($0[.nanosecondsEach], $0[.aloneNanosecondsEach]).map { $0 / $1 } }
    let allocations = found.flatMap { $0[.allocations] }
    var row = ScenarioReport.Row(name: hit.rawValue)
    row.figures = [
      Figure("processor time", .nanoseconds, times),
      Figure("load / memory store", .ratio, ratios, peer: "MemoryCache alone, key from a string"),
      Figure("allocations", .count, allocations),
    ].compactMap(\.self)
    report.rows.append(row)
    guard !times.isEmpty, !ratios.isEmpty else { return }
    report.goals.append(
      Goal(
        "a hit in \(hit.rawValue): processor time", Sample.median(times) / 1_000, .atMost(hit == .memory ? 0.5 : 0.7),
        .microseconds))
    report.goals.append(
      Goal(
        "a hit in \(hit.rawValue), against the memory store alone with a key from a string", Sample.median(ratios),
        .atMost(hit == .memory ? 4 : 6)))
    guard !allocations.isEmpty else { return }
    report.goals.append(
      Goal("heap allocations of a hit in \(hit.rawValue)", Sample.median(allocations), .atMost(0), .count))
  }

  private func addDisk(_ found: [Measurement], to report: inout ScenarioReport) {
    func times(_ quantity: Measurement.Quantity) -> [Double] { found.flatMap { $0[quantity] }.map { $0 * 1e6 } }
    let ratios = found.flatMap { zip($0[.facade], $0[.raw]).map { $0 / $1 } }
    var row = ScenarioReport.Row(name: FacadeJob.Hit.disk.rawValue)
    row.figures = [
      Figure("system calls", .microseconds, times(.raw)), Figure("synchronous", .microseconds, times(.own)),
      Figure("asynchronous", .microseconds, times(.called)), Figure("load", .microseconds, times(.facade)),
      Figure("load / system calls", .ratio, ratios, peer: "bare system calls"),
    ].compactMap(\.self)
    report.rows.append(row)
    guard !ratios.isEmpty else { return }
    report.goals.append(Goal("a hit of 20 KB on disk, against the bare system calls", Sample.median(ratios), .atMost(2)))
  }
}
