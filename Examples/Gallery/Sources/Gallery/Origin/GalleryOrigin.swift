import CacheManager
import LoopbackOrigin

/// The origin of the images with its slow link, and the scenarios.
actor GalleryOrigin {
  nonisolated let port: Int
  private let link: NetworkLink
  private let server: OriginServer
  private var images = GalleryImage.all
  /// The number of scenarios that have changed images.
  private var changes = 0
  /// The scenario that is being prepared. Scenarios are prepared one after another.
  private var preparing: Task<Void, any Error>?

  private init(_ server: OriginServer, _ link: NetworkLink) {
    (self.server, self.link, port) = (server, link, server.port)
    for image in images { server.setRoute(image.path, image.route) }
  }

  /// Starts an origin on a free port of 127.0.0.1.
  static func start(link: NetworkLink) async throws -> GalleryOrigin {
    GalleryOrigin(try await OriginServer.start(link: link), link)
  }

  func stop() async { await server.stop() }

  /// The counters since the start of the last scenario.
  var report: OriginReport { OriginReport(server, paths: images.map(\.path)) }

  /// Brings the cache and the origin into the state of a scenario, and sets the counters to zero.
  ///
  /// A soft purge makes responses stale at once, so no scenario waits for the end of a lifetime.
  ///
  /// - Throws: The errors of the stores.
  func prepare(_ scenario: Scenario, cache: ResourceManager) async throws {
    let previous = preparing
    let task = Task {
      _ = await previous?.result
      try await apply(scenario, cache)
    }
    preparing = task
    try await task.value
  }

  private func apply(_ scenario: Scenario, _ cache: ResourceManager) async throws {
    switch scenario {
    case .warm: break
    case .cold: try await cache.purge(.everything)
    case .stale, .changed, .offline: try await cache.purge(.everything, .soft)
    }
    // The origin does not stop, because another program could then get its port.
    await server.setLink(scenario == .offline ? .offline : link)
    if scenario == .changed { changeImages() }
    server.resetCounters()
  }

  /// Replaces every third image, starting at another one each time.
  private func changeImages() {
    for index in images.indices where index % 3 == changes % 3 {
      images[index].version += 1
      server.setRoute(images[index].path, images[index].route)
    }
    changes += 1
  }
}
