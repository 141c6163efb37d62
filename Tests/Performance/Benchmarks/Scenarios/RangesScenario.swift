#if Origin
import Foundation

/// Ranges of a stored body against `pread`, and the completion of a stored part against the link's minimum.
struct RangesScenario {
  let bench: Bench

  func run() async throws -> ScenarioReport {
    let rounds = bench.settings.rounds ?? 3
    let allowed = RangesJob.allowed / .seconds(1)
    var report = ScenarioReport(
      "ranges",
      "ranges of 64 KiB, and the missing half of 1 MB over 2 Mbit/s and 5 ms each way, at least \(Text.decimal(allowed, 2)) s, "
        + "\(rounds) rounds")
    guard let engine = Engine.allCases.first else { return report }
    let measured = try await bench.rounds(RangesJob.Way.measured, count: rounds) {
      RangesJob(way: $0, engine: engine, batches: 9)
    }
    for way in RangesJob.Way.measured {
      let own = measured[way] ?? []
      report.take(failuresOf: own, by: way.rawValue)
      switch way {
      case .disk, .pageCache:
        let ratios = own.flatMap { zip($0[.facade], $0[.raw]).map { $0 / $1 } }
        report.rows.append(
          .init(
            name: way.rawValue,
            figures: [
              Figure("ResourceManager", .microseconds, own.flatMap { $0[.facade] }.map { $0 * 1e6 }),
              Figure("pread", .microseconds, own.flatMap { $0[.raw] }.map { $0 * 1e6 }),
              Figure("ResourceManager / pread", .ratio, ratios, peer: "pread"),
            ].compactMap(\.self)))
        // Verification reads up to one more block of 64 KiB, which costs little beside an access to the disk.
        if way == .disk, !ratios.isEmpty {
          report.goals.append(Goal("\(way.rawValue), against pread", Sample.median(ratios), .atMost(1.5)))
        }
      case .completion:
        let walls = own.flatMap { $0[.wall] }
        report.rows.append(
          .init(
            name: way.rawValue,
            figures: [
              Figure("time", .seconds, walls),
              Figure("time / minimum", .ratio, walls.map { $0 / allowed }, peer: "the link's minimum"),
              Figure("requests", .count, own.flatMap { $0[.requests] }),
            ].compactMap(\.self)))
        if !walls.isEmpty {
          report.goals.append(
            Goal("\(way.rawValue): time, against the link's minimum", Sample.median(walls) / allowed, .atMost(1.02)))
        }
      }
    }
    return report
  }
}
#endif
