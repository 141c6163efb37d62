#if Origin
import CacheCore
import CacheManager
import CacheTransport
import ETagValidation
import Foundation
import HTTPTypes
import LoopbackOrigin
import MemoryStore
import Synchronization

/// Loads of three photographs over a slow link.
struct LinkJob: Job {
  static let name = "link"

  /// The reaction to the broken connection of the third load.
  enum Repair: String, Codable, Sendable {
    /// None, because the connection does not break.
    case nothing
    /// The caller loads the whole resource again.
    case again
    /// A wrapper around the engine requests the whole resource again.
    case retrying
    /// A wrapper around the engine requests the missing bytes.
    case resuming
  }

  static let bitsPerSecond = 2_000_000
  static let latency = Duration.milliseconds(5)
  static let sizes = [120_000, 300_000, 1_110_000]

  /// The time that the link needs for the bodies.
  static var allowed: Duration { .seconds(1) * (Double(sizes.reduce(0, +)) * 8 / Double(bitsPerSecond)) }

  let engine: Engine
  let isTogether: Bool
  let repair: Repair

  func run() async throws -> Measurement {
    let origin = try await OriginServer.start()
    let bodies = Self.sizes.map(Pattern.bytes)
    var measurement = Measurement()
    // One pass without the link, so that libraries, threads and tables are initialized.
    _ = try await pass(origin, bodies, path: "warm-up")
    await origin.setLink(NetworkLink(bitsPerSecond: Self.bitsPerSecond, latency: Self.latency))
    origin.resetCounters()
    let (wall, right) = try await pass(origin, bodies, path: "photograph")
    measurement.add(wall, to: .wall)
    measurement.add(origin.counters.requests, to: .requests)
    measurement.check("photographs", right, is: bodies.count)
    measurement.check("requests", origin.counters.requests, is: bodies.count + (repair == .nothing ? 0 : 1))
    await origin.stop()
    return measurement
  }

  /// Loads the photographs with a new engine and a new manager.
  private func pass(_ origin: OriginServer, _ bodies: [Data], path: String) async throws -> (Duration, Int) {
    let open = try engine.makeDownloader()
    let manager = ResourceManager(
      .init {
        $0.downloader = repaired(open.downloader)
        $0.memory = MemoryCache()
        $0.validator = ETagValidator()
      })
    for (index, body) in bodies.enumerated() {
      let breaks = repair != .nothing && index == bodies.count - 1
      origin.setRoute("/\(path)-\(index)", route(body, etag: .strong("\(path)-\(index)"), breaks: breaks))
    }
    let stopwatch = Stopwatch()
    let right = await withTaskGroup(of: Bool.self) { group in
      var right = 0
      for (index, body) in bodies.enumerated() {
        let url = origin.url("/\(path)-\(index)")
        group.addTask { await load(url, with: manager) == body }
        if !isTogether, await group.next() == true { right += 1 }
      }
      return await group.reduce(right) { $0 + ($1 ? 1 : 0) }
    }
    let wall = stopwatch.wall
    await manager.close()
    await open.close()
    return (wall, right)
  }

  private func repaired(_ downloader: any Downloader) -> any Downloader {
    switch repair {
    case .nothing, .again: downloader
    case .retrying: downloader.retrying()
    case .resuming: downloader.resuming().retrying()
    }
  }

  /// Returns the route of a photograph. If `breaks` is true, its first response is cut off in the middle.
  private func route(_ body: Data, etag: OriginETag, breaks: Bool) -> Route {
    let whole = OriginResponse(
      body, contentType: "image/jpeg", etag: etag, fields: [.cacheControl: "max-age=60"], acceptsRanges: true)
    guard breaks else { return Route(whole) }
    var broken = whole
    broken.delivery = .fault(.cut(afterBodyBytes: body.count / 2))
    let counter = AtomicCounter()
    return Route { [broken] _ in counter.next() == 1 ? broken : whole }
  }

  private func load(_ url: URL, with manager: ResourceManager) async -> Data? {
    if let resource = try? await manager.load(url) { return resource.data }
    guard repair == .again else { return nil }
    return try? await manager.load(url).data
  }
}
#endif
