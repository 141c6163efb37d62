#if Gateway
import CacheManager
import LoopbackOrigin

/// The origin of the images behind its slow link, and the scenarios.
actor GalleryOrigin {
  nonisolated let port: Int
  private let link: NetworkLink
  private var server: OriginServer
  private var isOnline = true
  private var images = GalleryImage.all
  /// The number of scenarios that have changed images.
  private var changes = 0
  /// The scenario that is being prepared. Two at the same time would start two origins on one port.
  private var preparing: Task<Void, any Error>?

  private init(_ server: OriginServer, _ link: NetworkLink) {
    (self.server, self.link, port) = (server, link, server.port)
    for image in images { server.setRoute(image.path, image.route) }
  }

  /// An origin on a free port of 127.0.0.1.
  static func start(link: NetworkLink) async throws -> GalleryOrigin {
    GalleryOrigin(try await OriginServer.start(link: link), link)
  }

  func stop() async { await server.stop() }

  /// The counters since the last scenario began.
  var report: OriginReport { OriginReport(server, paths: images.map(\.path)) }

  /// Brings the cache and the origin into the state of a scenario, and sets the counters to zero.
  ///
  /// No scenario waits for a lifetime to end: a soft purge makes responses stale at once.
  ///
  /// - Throws: `OriginError` when the origin's port has been taken while it was offline; the errors of the stores.
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
    if scenario == .offline { await goOffline() } else { try await goOnline() }
    if scenario == .changed { changeImages() }
    server.resetCounters()
  }

  private func goOffline() async {
    guard isOnline else { return }
    isOnline = false
    await server.stop()
  }

  private func goOnline() async throws {
    guard !isOnline else { return }
    server = try await OriginServer.start(link: link, port: port)
    for image in images { server.setRoute(image.path, image.route) }
    isOnline = true
  }

  /// Replaces every third image, beginning with another one each time.
  private func changeImages() {
    for index in images.indices where index % 3 == changes % 3 {
      images[index].version += 1
      server.setRoute(images[index].path, images[index].route)
    }
    changes += 1
  }
}
#endif
