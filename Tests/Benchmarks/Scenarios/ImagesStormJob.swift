#if VIPS && Origin
import CacheCore
import CacheManager
import ETagValidation
import Foundation
import ImageCodecs

/// Distinct large pictures that are asked for at once, small: what the process holds at most, and whether it computes all the
/// time.
struct ImagesStormJob: Job {
  static let name = "images-storm"

  let engine: Engine
  /// Where the pictures are: their number is behind it.
  let address: String
  let count: Int
  /// Bytes.
  let budget: Int

  func run() async throws -> Measurement {
    // What the library and the engine take once, with one picture.
    _ = try await storm(1, first: count)
    let before = ProcessUsage.peakMemory ?? 0
    var measurement = try await storm(count, first: 0)
    if let peak = ProcessUsage.peakMemory { measurement.add(peak - before, to: .peakMemory) }
    return measurement
  }

  private func storm(_ count: Int, first: Int) async throws -> Measurement {
    // As many connections as there are pictures: what bounds the memory is the budget alone.
    let open = try engine.makeDownloader(connections: count)
    let manager = ResourceManager(
      .init {
        $0.downloader = open.downloader
        $0.validator = ETagValidator()
        $0.executor = ProcessingExecutor()
        $0.memoryBudget = budget
      })
    let urls = try (first..<first + count).map { number in
      guard let url = URL(string: "\(address)\(number)") else { throw BenchmarkFailure("no URL: \(address)") }
      return url
    }
    let stopwatch = Stopwatch()
    let sizes = await withTaskGroup(of: PixelSize?.self) { group in
      for url in urls { group.addTask { try? await manager.load(url, as: .image(size: .fit(400, 400))).value.size } }
      return await group.reduce(into: [PixelSize?]()) { $0.append($1) }
    }
    var measurement = Measurement()
    stopwatch.stop(&measurement)
    measurement.check("thumbnails of 400 × 300", sizes.count { $0 == PixelSize(400, 300) }, is: count)
    measurement.add(manager.memoryUse.peak, to: .held)
    await manager.close()
    await open.close()
    // Who was told last lets go of its bytes a moment later.
    let clock = SystemClock()
    let end = clock.uptime + .seconds(5)
    while manager.memoryUse.inUse > 0, clock.uptime < end { try await clock.sleep(for: .milliseconds(10)) }
    measurement.check("bytes of the budget that are still taken", manager.memoryUse.inUse, is: 0)
    return measurement
  }
}
#endif
