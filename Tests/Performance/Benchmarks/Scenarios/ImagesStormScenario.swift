#if VIPS && Origin && os(Linux)
import Foundation
import HTTPTypes
import ImageCodecs
import LoopbackOrigin

/// The check that the budget bounds the memory of many simultaneous loads of large images, with all cores busy and no load lost.
struct ImagesStormScenario {
  let bench: Bench

  private let count = 200
  private let size = PixelSize(4_000, 3_000)

  func run() async throws -> ScenarioReport {
    let rounds = bench.settings.rounds ?? 1
    let image = try DrawnPhotograph.jpeg(size)
    // The origin runs in this process, so that its memory is not part of the measurement.
    let origin = try await OriginServer.start(logLimit: 0)
    origin.setFallback { request in
      OriginResponse(Self.labelled(image, request.target), contentType: "image/jpeg", fields: [.cacheControl: "max-age=60"])
    }
    defer { Task { await origin.stop() } }
    var report = ScenarioReport(
      "images-storm",
      "\(count) distinct JPEGs of \(size) and \(Text.decimal(Double(image.count) / 1e6, 1)) MB, loaded at once at 400 pixels, \(rounds) rounds"
    )
    let processors = Double(ProcessInfo.processInfo.activeProcessorCount)
    for (engine, budget) in Engine.allCases.flatMap({ engine in [256 << 20, 64 << 20, Int.max].map { (engine, $0) } }) {
      let name = "\(engine.name), \(budget == .max ? "no budget" : "a budget of \(budget >> 20) MiB")"
      var measured: [Measurement] = []
      for round in 0..<rounds {
        bench.settings.progress("round \(round + 1) of \(rounds): images-storm, \(name)")
        let job = ImagesStormJob(
          engine: engine, address: origin.url("/image/").absoluteString, count: count, budget: budget)
        measured.append(try await bench.child.run(job, limit: .seconds(300)))
      }
      report.take(failuresOf: measured, by: name)
      let megabytes = measured.flatMap { $0[.peakMemory] }.map { $0 / 1_048_576 }
      let busy = measured.flatMap { zip($0[.processor], $0[.wall]).map { $0 / $1 / processors * 100 } }
      report.rows.append(
        .init(
          name: name,
          figures: [
            Figure("time", .seconds, measured.flatMap { $0[.wall] }),
            Figure("processor time", .seconds, measured.flatMap { $0[.processor] }),
            Figure("cores busy", .percent, busy),
            Figure("accounted memory", .mebibytes, measured.flatMap { $0[.held] }.map { $0 / 1_048_576 }),
            Figure("growth of peak memory", .mebibytes, megabytes),
          ].compactMap(\.self)))
      guard budget != Int.max, !megabytes.isEmpty else { continue }
      report.goals.append(
        Goal("\(name): growth of memory", Sample.median(megabytes), .atMost(Double(budget >> 20)), .mebibytes))
      report.goals.append(Goal("\(name): cores busy", Sample.median(busy), .atLeast(80), .percent))
    }
    return report
  }

  /// Returns the image with a name in a comment, so that its bytes are distinct.
  private static func labelled(_ jpeg: Data, _ name: String) -> Data {
    let length = UInt16(name.utf8.count + 2)
    return jpeg.prefix(2) + Data([0xFF, 0xFE, UInt8(length >> 8), UInt8(length & 0xFF)]) + Data(name.utf8) + jpeg.dropFirst(2)
  }
}
#endif
