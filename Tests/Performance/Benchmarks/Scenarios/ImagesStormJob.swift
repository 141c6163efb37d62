#if VIPS && Origin && os(Linux)
import CacheCore
import CacheManager
import ETagValidation
import Foundation
import ImageCodecs

/// Simultaneous loads of small versions of distinct large images: the peak memory, and the use of the cores.
struct ImagesStormJob: Job {
  static let name = "images-storm"

  let engine: Engine
  /// The URL of an image without its number.
  let address: String
  let count: Int
  /// The memory budget in bytes.
  let budget: Int

  func run() async throws -> Measurement {
    // One image first, so that one-time allocations of the library and the engine do not count.
    _ = try await storm(1, first: count)
    let before = ProcessUsage.peakMemory ?? 0
    var measurement = try await storm(count, first: 0)
    if let peak = ProcessUsage.peakMemory { measurement.add(peak - before, to: .peakMemory) }
    return measurement
  }

  private func storm(_ count: Int, first: Int) async throws -> Measurement {
    // One connection for each image, so that nothing but the budget bounds the memory.
    let open = try engine.makeDownloader(connections: count)
    let manager = ResourceManager(
      .init {
        $0.downloader = open.downloader
        $0.validator = ETagValidator()
        $0.executor = ProcessingExecutor()
        $0.memoryBudget = budget
      })
    let urls = try (first..<first + count).map { number in
      guard let url = URL(string: "\(address)\(number)") else { throw BenchmarkFailure("'\(address)' is not a URL") }
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
    // A load releases its reservation shortly after its caller has received the value.
    let clock = SystemClock()
    let end = clock.uptime + .seconds(5)
    while manager.memoryUse.inUse > 0, clock.uptime < end { try await clock.sleep(for: .milliseconds(10)) }
    measurement.check("reserved bytes of the budget after all loads", manager.memoryUse.inUse, is: 0)
    return measurement
  }
}
#endif
