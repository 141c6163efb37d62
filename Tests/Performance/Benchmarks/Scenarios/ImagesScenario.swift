#if VIPS && os(Linux)
import Foundation
import ImageCodecs

/// The cost of a thumbnail against libvips' function, and of a folder of thumbnails against libvips' program.
struct ImagesScenario {
  let bench: Bench

  /// The size of a current camera's photograph.
  private static let large = PixelSize(4000, 3000)
  private static let photograph = PixelSize(3000, 2000)
  /// The number of drawn images. Each has several names.
  private static let distinct = 20

  func run() async throws -> ScenarioReport {
    let rounds = bench.settings.rounds ?? 3
    let count = bench.settings.isQuick ? 200 : 1_000
    var report = ScenarioReport(
      "images",
      "a JPEG of \(Self.large) to \(ThumbnailJob.side) pixels; \(count) of \(Self.photograph) to files; \(rounds) rounds")
    bench.settings.progress("drawing images")
    let image = bench.child.scratch("large.jpg")
    try DrawnPhotograph.jpeg(Self.large).write(to: image)
    let one = try await bench.rounds(ThumbnailJob.Way.allCases, count: rounds) {
      ThumbnailJob(way: $0, image: image, width: Self.large.width, height: Self.large.height, batches: 9)
    }
    addOne(one, to: &report)
    let folder = bench.child.scratch("photographs")
    try draw(count, in: folder)
    let many = try await bench.rounds(ThumbnailsJob.Way.allCases, count: rounds, limit: .seconds(600)) {
      ThumbnailsJob(way: $0, photographs: folder, folder: bench.child.scratch("thumbnails-of-\($0)"))
    }
    addMany(many, count, to: &report)
    return report
  }

  /// Writes few files under many names: each name is a resource of its own, and the files need little space.
  private func draw(_ count: Int, in folder: URL) throws {
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    for index in 0..<count {
      let file = folder.appending(path: "photograph-\(index).jpg")
      if index < Self.distinct {
        bench.settings.progress("drawing images: \(index + 1) of \(Self.distinct)")
        try DrawnPhotograph.jpeg(Self.photograph, seed: UInt64(index + 1)).write(to: file)
      } else {
        try FileManager.default.linkItem(at: folder.appending(path: "photograph-\(index % Self.distinct).jpg"), to: file)
      }
    }
  }

  private func addOne(_ measured: [ThumbnailJob.Way: [Measurement]], to report: inout ScenarioReport) {
    func values(_ way: ThumbnailJob.Way, _ quantity: Measurement.Quantity) -> [Double] {
      (measured[way] ?? []).flatMap { $0[quantity] }
    }
    func ratios(_ way: ThumbnailJob.Way, _ top: Measurement.Quantity, _ bottom: Measurement.Quantity) -> [Double] {
      (measured[way] ?? []).flatMap { zip($0[top], $0[bottom]).map { $0 / $1 } }
    }
    for way in ThumbnailJob.Way.allCases {
      report.take(failuresOf: measured[way] ?? [], by: way.rawValue)
      var row = ScenarioReport.Row(name: way.rawValue)
      row.figures = [
        Figure("time", .milliseconds, values(way, .wall).map { $0 * 1_000 }),
        Figure("processor time", .milliseconds, values(way, .processor).map { $0 * 1_000 }),
        Figure("time / libvips", .ratio, ratios(way, .wall, .raw), peer: "vips_thumbnail_buffer, one thread"),
        Figure(
          "processor time / libvips", .ratio, ratios(way, .processor, .rawProcessor), peer: "vips_thumbnail_buffer, one thread"),
        Figure("memory", .megabytes, values(way, .peakMemory).map { $0 / 1e6 }),
      ].compactMap(\.self)
      report.rows.append(row)
    }
    let own = Sample.median(ratios(.own, .wall, .raw))
    guard own > 0 else { return }
    report.goals.append(Goal("one thumbnail: time, against vips_thumbnail_buffer", own, .atMost(1.1)))
    report.goals.append(
      Goal(
        "one thumbnail: processor time, against vips_thumbnail_buffer", Sample.median(ratios(.own, .processor, .rawProcessor)),
        .atMost(1.1)))
    // Both are ratios to libvips' function, so their quotient compares them with each other.
    let full = Sample.median(ratios(.ownInFull, .wall, .raw))
    report.goals.append(Goal("one thumbnail: speedup over a full decode and resize", full / own, .atLeast(3)))
    let decoded = Double(Self.large.area * 3)
    report.goals.append(
      Goal(
        "one thumbnail: memory, as a part of the full image's pixels", Sample.median(values(.own, .peakMemory)) / decoded * 100,
        .atMost(12.5), .percent
      ))
    report.remarks.append("libvips: vips_thumbnail_buffer with one thread, measured alternately in the same process")
  }

  private func addMany(_ measured: [ThumbnailsJob.Way: [Measurement]], _ count: Int, to report: inout ScenarioReport) {
    for way in ThumbnailsJob.Way.allCases {
      let own = measured[way] ?? []
      report.take(failuresOf: own, by: way.rawValue)
      var row = ScenarioReport.Row(name: "\(count) photographs, \(way.rawValue)")
      row.figures = [
        Figure("images", .perSecond, own.flatMap { $0[.wall] }.map { Double(count) / $0 }),
        Figure("time", .milliseconds, own.flatMap { $0[.wall] }.map { $0 * 1_000 }),
        Figure("processor time", .milliseconds, own.flatMap { $0[.processor] }.map { $0 * 1_000 }),
        Figure("second run", .milliseconds, own.flatMap { $0[.secondRun] }.map { $0 * 1_000 }),
      ].compactMap(\.self)
      report.rows.append(row)
    }
    let (own, program) = (measured[.loader] ?? [], measured[.program] ?? [])
    func ratios(_ quantity: Measurement.Quantity) -> [Double] {
      zip(own, program).flatMap { zip($0[quantity], $1[quantity]).map { $1 / $0 } }
    }
    guard !ratios(.wall).isEmpty else { return }
    report.goals.append(
      Goal("\(count) photographs: images per second, against vipsthumbnail", Sample.median(ratios(.wall)), .atLeast(0.9)))
    report.goals.append(
      Goal(
        "\(count) photographs: images per second of processor time, against vipsthumbnail", Sample.median(ratios(.processor)),
        .atLeast(0.9)))
    let faster = own.flatMap { zip($0[.wall], $0[.secondRun]).map { $0 / $1 } }
    report.goals.append(
      Goal("\(count) unchanged photographs: speedup of the second run", Sample.median(faster), .atLeast(50)))
  }
}
#endif
