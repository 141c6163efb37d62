#if Redis
import CacheCore
import CacheManager
import CacheTesting
import ETagValidation
import Foundation
import HTTPTypes
import RedisStore

/// Hits and metadata updates of `RedisCache`.
struct RedisJob: Job {
  static let name = "redis"

  enum Work: String, Codable, Hashable, Sendable, CaseIterable {
    case hits
    case facadeHits
    case smallUpdates
    case largeUpdates
  }

  let work: Work
  let port: Int
  /// The number of connections to the server.
  let connections: Int
  /// The number of tasks that use the cache at the same time.
  let width: Int
  let operations: Int
  let batches: Int

  private var size: Int {
    switch work {
    case .hits, .facadeHits: 20_000
    case .smallUpdates: 4_096
    case .largeUpdates: 1 << 20
    }
  }

  func run() async throws -> Measurement {
    guard let server = URL(string: "redis://127.0.0.1:\(port)") else { throw BenchmarkFailure("a URL is invalid") }
    let cache = try RedisCache(
      url: server,
      configuration: .init {
        $0.connections = connections
        $0.timeout = .seconds(30)
      })
    let body = Pattern.bytes(size)
    let origin = ScriptedDownloader()
    // Each task has its own resource, because the manager joins equal loads.
    let urls = (0..<width).compactMap { URL(string: "https://example.com/\(work)/\($0)") }
    for url in urls { origin.respond(to: url, with: .ok(body, etag: "\"1\"", cacheControl: "max-age=3600")) }
    let manager = ResourceManager(
      .init {
        $0.downloader = origin
        $0.store = cache
        $0.validator = ETagValidator()
      })
    var measurement = Measurement()
    for url in urls where try await manager.load(url).data != body {
      measurement.failures.append("the body differs from the origin's")
    }
    let entries = try await cache.entries { key, _ in key.resource.contains("/\(work)/") }
    guard entries.count == width else { throw BenchmarkFailure("\(entries.count) of \(width) responses were stored") }
    // The first batch is the warm-up.
    for batch in 0...batches {
      let watch = Stopwatch()
      let right = await withTaskGroup(of: Int.self) { group in
        for (url, entry) in zip(urls, entries) { group.addTask { await repeated(cache, manager, url, entry) } }
        return await group.reduce(0, +)
      }
      guard batch > 0 else { continue }
      watch.stop(&measurement)
      measurement.check("\(work)", right, is: operations)
    }
    await manager.close()
    await cache.close()
    return measurement
  }

  /// Runs one task's share of the operations and returns the number of right ones.
  private func repeated(_ cache: RedisCache, _ manager: ResourceManager, _ url: URL, _ entry: ListedEntry) async -> Int {
    var right = 0
    for _ in 0..<operations / width {
      switch work {
      case .hits: if (try? await cache.variants(of: entry.key.resource))?.first?.body.data?.count == size { right += 1 }
      case .facadeHits:
        if let found = try? await manager.load(url), found.source == .disk, found.data.count == size { right += 1 }
      case .smallUpdates, .largeUpdates:
        let isUpdated = try? await cache.updateMetadata(
          of: entry.key, to: entry.metadata, ifRevision: entry.metadata.revision)
        if isUpdated == true { right += 1 }
      }
    }
    return right
  }
}
#endif
