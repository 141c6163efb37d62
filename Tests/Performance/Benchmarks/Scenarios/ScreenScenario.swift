#if Origin && AsyncHTTP
import Foundation

/// The time to load a screen of images over a slow link, without a cache and on each path through the cache.
struct ScreenScenario {
  let bench: Bench

  func run() async throws -> ScenarioReport {
    let rounds = bench.settings.rounds ?? 3
    var report = ScenarioReport(
      "screen",
      "\(ScreenJob.resources) images of \(ScreenJob.size / 1_000) KB at once, \(ScreenJob.connections) open connections, "
        + "10 Mbit/s, 20 ms each way, \(rounds) rounds of 3: median (least–most)")
    let paths = ScreenJob.Path.allCases
    let measured = try await bench.rounds(paths, count: rounds) {
      ScreenJob(path: $0, passes: 3, folder: bench.child.scratch("").path)
    }
    let bare = (measured[.bare] ?? []).map { Sample.median($0[.wall]) }
    for path in paths {
      let own = measured[path] ?? []
      report.take(failuresOf: own, by: path.rawValue)
      // Ratios are taken per round, because other work of the machine affects both sides of a round.
      let ratios = zip(own, bare).map { Sample.median($0[.wall]) / $1 }
      var row = ScenarioReport.Row(name: path.rawValue)
      row.figures = [
        Figure("time", .milliseconds, own.flatMap { $0[.wall] }.map { $0 * 1_000 }),
        Figure("requests", .count, own.flatMap { $0[.requests] }),
      ].compactMap(\.self)
      if path != .bare {
        row.figures += [Figure("time / no cache", .ratio, ratios, peer: ScreenJob.Path.bare.rawValue)].compactMap(\.self)
      }
      report.rows.append(row)
    }
    return report
  }
}
#endif
