import Foundation

/// The cost of a disk store against the bare system calls, and the cost of a folder with many entries.
struct DiskScenario {
  let bench: Bench

  private struct Way: Hashable, Sendable {
    let call: DiskJob.Call
    /// The size of a body in bytes.
    let size: Int

    var name: String { "\(call.rawValue), \(size >= 1 << 20 ? "\(size >> 20) MB" : "\(size >> 10) KB")" }

    /// The goal for the store's synchronous work, as a multiple of the bare calls.
    var goal: Double? {
      switch (call, size) {
      case (.read, 20 << 10): 1.4
      case (.read, 1 << 20): 1.6
      case (.uncheckedRead, 20 << 10): 1.15
      case (.uncheckedRead, 1 << 20): 1.1
      case (.miss, _): 0.1
      case (.write, 20 << 10): 1.25
      case (.flushedWrite, 20 << 10): 1.1
      case (.remove, 20 << 10): 1.3
      default: nil
      }
    }

    var entries: Int { call == .flushedWrite ? 32 : size > 1 << 17 ? 64 : 256 }
    var batches: Int { call == .flushedWrite || size > 1 << 17 ? 6 : 12 }
  }

  private static let sizes = [4 << 10, 20 << 10, 100 << 10, 1 << 20]
  private static let entries = 50_000
  private static let trimmed = 10_000

  func run() async throws -> ScenarioReport {
    let rounds = bench.settings.rounds ?? 3
    var report = ScenarioReport(
      "disk",
      "bare system calls, the store's synchronous work, and its asynchronous call, \(rounds) rounds; \(Self.entries) entries of 4 KB"
    )
    var ways = [DiskJob.Call.read, .write].flatMap { call in Self.sizes.map { Way(call: call, size: $0) } }
    ways += [Way(call: .flushedWrite, size: 20 << 10), Way(call: .miss, size: 20 << 10), Way(call: .remove, size: 20 << 10)]
    ways += [20 << 10, 1 << 20].map { Way(call: .uncheckedRead, size: $0) }
    ways += [4 << 10, 1 << 20].map { Way(call: .refresh, size: $0) }
    let measured = try await bench.rounds(ways, count: rounds) {
      DiskJob(call: $0.call, size: $0.size, entries: $0.entries, batches: $0.batches)
    }
    for way in ways { add(way, measured[way] ?? [], to: &report) }
    addRefreshGoal(measured, to: &report)
    var folders: [Measurement] = []
    for round in 0..<rounds { folders.append(try await measureFolder(round, &report)) }
    DiskFolderFigures(folders).add(to: &report, trimmed: Self.trimmed)
    return report
  }

  private func add(_ way: Way, _ own: [Measurement], to report: inout ScenarioReport) {
    report.take(failuresOf: own, by: way.name)
    func times(_ quantity: Measurement.Quantity) -> [Double] { own.flatMap { $0[quantity] }.map { $0 * 1e6 } }
    func ratios(_ quantity: Measurement.Quantity) -> [Double] {
      own.flatMap { zip($0[quantity], $0[.raw]).map { $0 / $1 } }
    }
    var row = ScenarioReport.Row(name: way.name)
    row.figures = [
      Figure("system calls", .microseconds, times(.raw)), Figure("synchronous", .microseconds, times(.own)),
      Figure("asynchronous", .microseconds, times(.called)),
      Figure("synchronous / system calls", .ratio, ratios(.own), peer: "bare system calls"),
    ].compactMap(\.self)
    report.rows.append(row)
    guard let goal = way.goal, !ratios(.own).isEmpty else { return }
    report.goals.append(Goal("\(way.name), against the bare system calls", Sample.median(ratios(.own)), .atMost(goal)))
  }

  private func addRefreshGoal(_ measured: [Way: [Measurement]], to report: inout ScenarioReport) {
    let times = [1 << 20, 4 << 10].map { size in
      Sample.median((measured[Way(call: .refresh, size: size)] ?? []).flatMap { $0[.own] })
    }
    guard times[1] > 0 else { return }
    report.goals.append(Goal("update the metadata of 1 MB, against 4 KB", times[0] / times[1], .atMost(1.2)))
  }

  private func measureFolder(_ round: Int, _ report: inout ScenarioReport) async throws -> Measurement {
    let folder = bench.child.scratch("many-\(round)").path
    defer { try? FileManager.default.removeItem(atPath: folder) }
    var measurement = Measurement()
    for fills in [true, false] {
      bench.settings.progress("round \(round + 1): \(DiskFolderJob.name), \(fills ? "filling" : "measuring")")
      let job = DiskFolderJob(folder: folder, entries: Self.entries, trimmed: Self.trimmed, fills: fills)
      measurement = try await bench.child.run(job, limit: .seconds(300))
      report.take(failuresOf: [measurement], by: fills ? "filling the folder" : "measuring the folder")
    }
    return measurement
  }
}
