#if VIPS && os(Linux)
import Foundation
import ImageCodecs

/// The cost of a cached processed image in memory and on disk, against processing the original.
struct VariantsScenario {
  let bench: Bench

  /// The number of loads in a batch, if it is not 50.
  private static let loads: [VariantsJob.Way: Int] = [.memory: 2_000, .memoryAnew: 2_000, .original: 3]

  func run() async throws -> ScenarioReport {
    let rounds = bench.settings.rounds ?? 3
    let size = PixelSize(4000, 3000)
    var report = ScenarioReport(
      "images-variants", "loads of a JPEG of \(size) at \(ThumbnailJob.side) pixels, \(rounds) rounds")
    bench.settings.progress("drawing an image")
    let image = bench.child.scratch("original.jpg")
    try DrawnPhotograph.jpeg(size).write(to: image)
    let measured = try await bench.rounds(VariantsJob.Way.allCases, count: rounds) {
      VariantsJob(way: $0, image: image, batches: 9, loads: Self.loads[$0] ?? 50)
    }
    for way in VariantsJob.Way.allCases { add(way, measured[way] ?? [], to: &report) }
    report.remarks.append(
      "processing: ImageDecoder(size:) on bytes in memory; full: a full decode, then a resize; both alternate with the loads")
    report.remarks.append("for rows in memory, the peer is a hit in memory of the original's bytes")
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
      Figure("load", .microseconds, times(.facade)), Figure("processor time", .microseconds, times(.processor)),
      Figure(isMemory ? "hit" : "processing", .microseconds, times(.raw)), Figure("full", .microseconds, times(.own)),
      Figure(
        isMemory ? "load / hit" : "processing / load", .ratio, isMemory ? ratios(.facade, .raw) : ratios(.raw, .facade),
        peer: isMemory ? "a hit of plain bytes" : "ImageDecoder(size:) on the original"),
      Figure(
        isMemory ? "processor time / hit" : "processor time, processing / load", .ratio,
        isMemory ? ratios(.processor, .rawProcessor) : ratios(.rawProcessor, .processor),
        peer: isMemory ? "a hit of plain bytes" : "ImageDecoder(size:) on the original"),
      Figure("full / load", .ratio, ratios(.own, .facade), peer: "full decode and resize of the original"),
    ].compactMap(\.self)
    report.rows.append(row)
    switch way {
    case .memory:
      report.goals.append(
        Goal(
          "a processed image in memory: processor time, against a hit of plain bytes",
          Sample.median(ratios(.processor, .rawProcessor)), .atMost(1.1)))
    case .webp, .jpeg:
      report.goals.append(
        Goal(
          "a processed image, \(way.rawValue): speedup over processing the original", Sample.median(ratios(.raw, .facade)),
          .atLeast(20)))
    case .memoryAnew, .file, .original: break
    }
  }
}
#endif
