#if Origin && AsyncHTTP
import CacheCore
import CacheManager
import ETagValidation
import Foundation
import HTTPTypes
import LoopbackOrigin
import MemoryStore

/// The revalidation of a screen of stale resources in memory, over a link with latency.
struct StaleJob: Job {
  static let name = "stale"

  static let resources = 56
  static let connections = 6
  /// The latency in each direction.
  static let latency = Duration.milliseconds(5)

  /// The minimum number of round trips, with one request at a time on each connection.
  static var roundTrips: Int { (resources + connections - 1) / connections }

  /// The number of simultaneous loads.
  let parallel: Int
  let passes: Int

  func run() async throws -> Measurement {
    let origin = try await OriginServer.start()
    let bodies = (0..<Self.resources).map { Pattern.bytes(512 + $0 * 12) }
    for (index, body) in bodies.enumerated() {
      let answer = OriginResponse(
        body, contentType: "image/jpeg", etag: .strong("version-\(index)"), fields: [.cacheControl: "max-age=0"])
      origin.setRoute("/\(index)", Route(answer))
    }
    let open = try Engine.asyncHTTP.makeDownloader(connections: Self.connections)
    let manager = ResourceManager(
      .init {
        $0.downloader = open.downloader
        $0.memory = MemoryCache()
        $0.validator = ETagValidator()
      })
    var measurement = Measurement()
    // The first passes run without the link. They store and revalidate everything, and warm up connections and code.
    for _ in 0..<2 { _ = await load(bodies, origin, manager) }
    measurement.check("connections beyond the limit", max(0, origin.counters.openConnections - Self.connections), is: 0)
    await origin.setLink(NetworkLink(latency: Self.latency))
    let bare = BareRevalidation(origin.url("/0").absoluteString, etag: OriginETag.strong("version-0").description)
    try await bare.run()
    for _ in 0..<passes {
      measurement.add(try await bare.median(of: 9), to: .roundTrip)
      origin.resetCounters()
      let stopwatch = Stopwatch()
      let confirmed = await load(bodies, origin, manager)
      measurement.add(stopwatch.wall, to: .wall)
      check(origin.counters, confirmed, &measurement)
    }
    await bare.close()
    await manager.close()
    await open.close()
    await origin.stop()
    return measurement
  }

  private func check(_ counters: OriginCounters, _ confirmed: Int, _ measurement: inout Measurement) {
    measurement.check("revalidated resources with the right content", confirmed, is: Self.resources)
    measurement.check("requests", counters.requests, is: Self.resources)
    measurement.check("304 responses", counters.notModified, is: Self.resources)
    measurement.check("bytes of bodies", counters.bodyBytesSent, is: 0)
    measurement.check("new connections", counters.connectionsAccepted, is: 0)
  }

  /// Loads all resources, `parallel` at a time.
  ///
  /// - Returns: The number of revalidated resources with the right content.
  private func load(_ bodies: [Data], _ origin: OriginServer, _ manager: ResourceManager) async -> Int {
    let counter = AtomicCounter()
    let indices = Array(bodies.indices)
    let urls = indices.map { origin.url("/\($0)") }
    return await withTaskGroup(of: Int.self) { group in
      for _ in 0..<parallel {
        group.addTask {
          var right = 0
          while let index = counter.take(from: indices) {
            let resource = try? await manager.load(urls[index])
            if resource?.source == .revalidated, resource?.data == bodies[index] { right += 1 }
          }
          return right
        }
      }
      return await group.reduce(0, +)
    }
  }
}
#endif
