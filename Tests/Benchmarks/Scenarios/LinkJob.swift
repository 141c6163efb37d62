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

/// Three photographs behind a slow link.
struct LinkJob: Job {
  static let name = "link"

  /// What the caller does when the third one's connection breaks.
  enum Repair: String, Codable, Sendable {
    /// The connection does not break.
    case nothing
    /// Asks for the whole again.
    case again
    /// A downloader around the engine asks for the whole again.
    case retrying
    /// A downloader around the engine asks for what is missing.
    case resuming
  }

  static let bitsPerSecond = 2_000_000
  static let latency = Duration.milliseconds(5)
  static let sizes = [120_000, 300_000, 1_110_000]

  /// What the link needs for the bodies alone.
  static var allowed: Duration { .seconds(1) * (Double(sizes.reduce(0, +)) * 8 / Double(bitsPerSecond)) }

  let engine: Engine
  let isTogether: Bool
  let repair: Repair

  func run() async throws -> Measurement {
    let origin = try await OriginServer.start()
    let bodies = Self.sizes.map(Pattern.bytes)
    var measurement = Measurement()
    // What a process does for the first time (libraries, threads, tables) is done before the link is there.
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

  /// With an engine, connections and a manager of its own.
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

  /// The first answer to it breaks off in the middle, when it is to break.
  private func route(_ body: Data, etag: OriginETag, breaks: Bool) -> Route {
    let whole = OriginResponse(
      body, contentType: "image/jpeg", etag: etag, fields: [.cacheControl: "max-age=60"], acceptsRanges: true)
    guard breaks else { return Route(whole) }
    var broken = whole
    broken.delivery = .fault(.cut(afterBodyBytes: body.count / 2))
    let turn = Turn()
    return Route { [broken] _ in turn.next() == 1 ? broken : whole }
  }

  private func load(_ url: URL, with manager: ResourceManager) async -> Data? {
    if let resource = try? await manager.load(url) { return resource.data }
    guard repair == .again else { return nil }
    return try? await manager.load(url).data
  }
}
#endif
