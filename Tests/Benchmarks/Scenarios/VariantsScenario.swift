#if VIPS
import Foundation
import ImageCodecs

/// What a processed picture costs that is there already, in memory and on disk, beside making it.
struct VariantsScenario {
  let bench: Bench

  /// A batch, where it isn't 50.
  private static let loads: [VariantsJob.Way: Int] = [.memory: 2_000, .memoryAnew: 2_000, .original: 3]

  func run() async throws -> ScenarioReport {
    let rounds = bench.settings.rounds ?? 3
    let size = PixelSize(4000, 3000)
    var report = ScenarioReport(
      "images-variants", "loads of a JPEG of \(size) at \(ThumbnailJob.side) pixels that is stored, \(rounds) rounds")
    bench.settings.progress("drawing a picture")
    let picture = bench.child.scratch("original.jpg")
    try DrawnPhotograph.jpeg(size).write(to: picture)
    let measured = try await bench.rounds(VariantsJob.Way.allCases, count: rounds) {
      VariantsJob(way: $0, picture: picture, batches: 9, loads: Self.loads[$0] ?? 50)
    }
    for way in VariantsJob.Way.allCases { add(way, measured[way] ?? [], to: &report) }
    report.remarks.append(
      "made: by ImageDecoder(size:) of bytes in memory; in full: decoded in full and resized; each in turn with the loads.")
    report.remarks.append("memory is beside a hit in memory of the original's bytes.")
    return report
  }

  private func add(_ way: VariantsJob.Way, _ own: [Measurement], to report: inout ScenarioReport) {
    report.take(failuresOf: own, by: way.rawValue)
    func times(_ quantity: Measurement.Quantity) -> [Double] { own.flatMap { $0[quantity] }.map { $0 * 1e6 } }
    func ratios(_ top: Measurement.Quantity, _ bottom: Measurement.Quantity) -> [Double] {
      own.flatMap { zip($0[top], $0[bottom]).map { $0 / $1 } }
    }
    var row = ScenarioReport.Row(name: way.rawValue)
    let isMemory = way == .memory || way == .memoryAnew
    row.figures = [
      Figure("load", .microseconds, times(.facade)), Figure("processor", .microseconds, times(.processor)),
      Figure(isMemory ? "hit" : "made", .microseconds, times(.raw)), Figure("in full", .microseconds, times(.own)),
      Figure(isMemory ? "load / hit" : "made / load", .ratio, isMemory ? ratios(.facade, .raw) : ratios(.raw, .facade)),
      Figure("… processor", .ratio, isMemory ? ratios(.processor, .rawProcessor) : ratios(.rawProcessor, .processor)),
      Figure("in full / load", .ratio, ratios(.own, .facade)),
    ].compactMap(\.self)
    report.rows.append(row)
    switch way {
    case .memory:
      report.goals.append(
        Goal("a picture in memory, against any hit there", Sample.median(ratios(.processor, .rawProcessor)), .atMost(1.1)))
    case .webp, .jpeg:
      report.goals.append(
        Goal(
          "\(way.rawValue), how much faster than decoding and resizing the original", Sample.median(ratios(.raw, .facade)),
          .atLeast(20)))
    case .memoryAnew, .file, .original: break
    }
  }
}
#endif
