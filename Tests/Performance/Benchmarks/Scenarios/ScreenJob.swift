#if Origin && AsyncHTTP
import CacheCore
import CacheManager
import DiskStore
import ETagValidation
import Foundation
import HTTPTypes
import LoopbackOrigin
import MemoryStore

/// Loads of a screen of images over a slow link, with and without a cache.
struct ScreenJob: Job {
  static let name = "screen"

  enum Path: String, Codable, Hashable, Sendable, CaseIterable {
    case bare = "async-http-client, no cache"
    case cold = "Etagere, nothing cached"
    case revalidated = "Etagere, stale and unchanged"
    case disk = "Etagere, fresh on disk"
    case memory = "Etagere, fresh in memory"
  }

  static let resources = 50
  /// The size of an image in bytes.
  static let size = 40_000
  static let connections = 6
  static let bitsPerSecond = 10_000_000
  /// The latency in each direction.
  static let latency = Duration.milliseconds(20)

  let path: Path
  /// The number of measured passes.
  let passes: Int
  /// The folder in which the disk store's folder is created.
  let folder: String

  func run() async throws -> Measurement {
    let origin = try await OriginServer.start()
    let body = Pattern.bytes(Self.size)
    for index in 0..<Self.resources {
      for (kind, control) in [("stale", "max-age=0"), ("fresh", "max-age=3600")] {
        let answer = OriginResponse(
          body, contentType: "image/jpeg", etag: .strong("\(kind)-\(index)"), fields: [.cacheControl: control])
        origin.setRoute("/\(kind)/\(index)", Route(answer))
      }
    }
    let folder = URL(filePath: folder).appending(path: "screen-\(UUID().uuidString)")
    defer { try? FileManager.default.removeItem(at: folder) }
    var measurement = Measurement()
    if path == .bare {
      let client = BareAsyncHTTPClient(connections: Self.connections)
      try await measure(origin, &measurement) { url in
        let found = Lock(false)
        try await client.load(Address(url.absoluteString)) { bytes in
          found.withLock { $0 = bytes.count == Self.size && Pattern.matches(bytes, at: 0) }
        }
        return found.withLock { $0 }
      }
      try await client.close()
    } else {
      let open = try Engine.asyncHTTP.makeDownloader(connections: Self.connections)
      let store = try DiskCache(folder: folder, configuration: .init(durability: .none))
      let manager = ResourceManager(
        .init {
          $0.downloader = open.downloader
          $0.store = store
          // Without a memory store, every pass loads from disk.
          if path != .disk { $0.memory = MemoryCache() }
          $0.validator = ETagValidator()
        })
      try await measure(origin, &measurement) { url in
        let resource = try await manager.load(url)
        return resource.source == expectedSource && resource.data == body
      }
      await manager.close()
      await open.close()
      await store.close()
    }
    await origin.stop()
    return measurement
  }

  /// The expected source of a measured load.
  private var expectedSource: ResourceSource {
    switch path {
    case .bare, .cold: .network
    case .revalidated: .revalidated
    case .disk: .disk
    case .memory: .memory
    }
  }

  private func measure(
    _ origin: OriginServer, _ measurement: inout Measurement, _ load: @escaping @Sendable (URL) async throws -> Bool
  ) async throws {
    // The first passes run without the link. They open the connections, and fill the cache for the paths that need it.
    for pass in [-2, -1] { _ = try await loadAll(origin, pass, load) }
    await origin.setLink(NetworkLink(bitsPerSecond: Self.bitsPerSecond, latency: Self.latency))
    for pass in 0..<passes {
      origin.resetCounters()
      let stopwatch = Stopwatch()
      let right = try await loadAll(origin, pass, load)
      measurement.add(stopwatch.wall, to: .wall)
      measurement.add(origin.counters.requests, to: .requests)
      measurement.check("loads from the expected source, with the right content", right, is: Self.resources)
      let isRequested = path != .disk && path != .memory
      measurement.check("requests", origin.counters.requests, is: isRequested ? Self.resources : 0)
      measurement.check("304 responses", origin.counters.notModified, is: path == .revalidated ? Self.resources : 0)
    }
  }

  /// Starts the loads of all images at once.
  ///
  /// - Returns: The number of loads from the expected source with the right content.
  private func loadAll(
    _ origin: OriginServer, _ pass: Int, _ load: @escaping @Sendable (URL) async throws -> Bool
  ) async throws -> Int {
    // A unique query for each pass makes the URL new to the cache.
    let query = path == .cold ? "?\(pass)" : ""
    let kind = path == .revalidated ? "stale" : "fresh"
    let urls = (0..<Self.resources).map { origin.url("/\(kind)/\($0)\(query)") }
    return try await withThrowingTaskGroup(of: Bool.self) { group in
      for url in urls { group.addTask { try await load(url) } }
      return try await group.reduce(0) { $0 + ($1 ? 1 : 0) }
    }
  }
}
#endif
