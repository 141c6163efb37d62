#if Redis && Origin && AsyncHTTP
import CacheCore
import CacheManager
import CacheTesting
import DiskStore
import ETagValidation
import Foundation
import HTTPTypes
import MemoryStore
import RedisStore
import StoreComposition

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// One process of a fleet, with a memory and a disk of its own in front of a shared Redis server.
struct FleetJob: Job {
  static let name = "fleet"

  enum Work: String, Codable, Hashable, Sendable {
    /// Many loads of one resource that is not cached.
    case cold
    /// The same, but the process that gets the response with ``killing`` ends without notice.
    case killed
    /// One process purges the tag that all entries of all processes have.
    case purge
  }

  /// A response field that makes its receiver end itself.
  static let killing = "X-Kill"
  static let tag = "all"

  let work: Work
  /// The number of this process. The process 0 purges.
  let number: Int
  let port: Int
  let origin: URL
  /// The number of simultaneous loads, or of entries to purge.
  let count: Int
  let folder: String

  func run() async throws -> Measurement {
    guard let server = URL(string: "redis://127.0.0.1:\(port)") else { throw BenchmarkFailure("a URL is invalid") }
    let cache = try RedisCache(url: server, configuration: .init { $0.timeout = .seconds(10) })
    let disk = try DiskCache(folder: URL(filePath: "\(folder)/\(number)", directoryHint: .isDirectory))
    let store = try LayeredStore([disk, cache])
    let open = try Engine.asyncHTTP.makeDownloader()
    let manager = ResourceManager(
      .init {
        $0.downloader = EndingDownloader(base: open.downloader)
        $0.memory = MemoryCache()
        $0.store = store
        $0.fleet = RedisFleet(cache)
        $0.validator = ETagValidator()
        $0.collapseTimeout = .seconds(30)
      })
    // A process that has just joined the fleet revalidates each response.
    while try await manager.load(origin.appending(path: "warm")).source != .memory {
      try await Task.sleep(for: .milliseconds(20))
    }
    var measurement = Measurement()
    switch work {
    case .cold, .killed: try await loadAtOnce(manager, &measurement)
    case .purge: try await purge(manager, store, disk, &measurement)
    }
    await manager.close()
    await cache.close()
    await open.close()
    return measurement
  }

  /// Waits until all processes have arrived here.
  private func meet(_ place: String, _ manager: ResourceManager) async throws {
    _ = try await manager.load(origin.appending(path: place), options: RequestOptions { $0.policy = .reload })
  }

  private func loadAtOnce(_ manager: ResourceManager, _ measurement: inout Measurement) async throws {
    try await meet("start", manager)
    let url = origin.appending(path: "cold")
    let watch = Stopwatch()
    let right = await withTaskGroup(of: Bool.self) { group in
      for _ in 0..<count { group.addTask { (try? await manager.load(url).data.count) == 20_000 } }
      return await group.reduce(into: 0) { $0 += $1 ? 1 : 0 }
    }
    watch.stop(&measurement)
    measurement.add(Double(count - right), to: .failed)
  }

  private func purge(_ manager: ResourceManager, _ store: LayeredStore, _ disk: DiskCache, _ measurement: inout Measurement)
    async throws
  {
    // The bytes do not come over the network, because the loads are not measured.
    let local = ScriptedDownloader()
    let fields: HTTPFields = HTTPField.Name("Cache-Tag").map { [$0: Self.tag] } ?? [:]
    let urls = (0..<count).compactMap { URL(string: "https://example.com/\($0)") }
    for url in urls { local.respond(to: url, with: .ok(Data("0123456789".utf8), cacheControl: "max-age=3600", fields: fields)) }
    // The first process stores the entries, and the others copy them.
    if number != 0 { try await meet("stored", manager) }
    let others = try await disk.usage()?.entries ?? 0
    for url in urls { _ = try await manager.load(url, options: RequestOptions { $0.downloader = .use(local) }) }
    await store.flush()
    if number == 0 { try await meet("stored", manager) }
    try await meet("start", manager)
    let watch = Stopwatch()
    if number == 0 {
      let purged = try await manager.purge(.tag(Self.tag))
      measurement.check("purged", purged, is: count)
      measurement.add(watch.wall, to: .called)
    }
    // Two meetings were stored since the count.
    while try await disk.usage()?.entries ?? 0 > others + 2 { try await Task.sleep(for: .milliseconds(5)) }
    watch.stop(&measurement)
    try await meet("purged", manager)
    let changed = ScriptedDownloader()
    var stale = 0
    for url in urls.prefix(1_000) {
      changed.respond(to: url, with: .ok(Data("new".utf8), cacheControl: "max-age=3600"))
      let body = try await manager.load(url, options: RequestOptions { $0.downloader = .use(changed) }).data
      if body != Data("new".utf8) { stale += 1 }
    }
    measurement.add(Double(stale), to: .stored)
    measurement.check("stale responses after the purge", stale, is: 0)
  }
}

/// A downloader that ends the process after the head of a response with ``FleetJob/killing``.
private struct EndingDownloader: Downloader {
  let base: any Downloader

  var id: ComponentID { base.id }

  func download(_ request: DownloadRequest) async throws(CacheError) -> DownloadResponse {
    let response = try await base.download(request)
    if let name = HTTPField.Name(FleetJob.killing), response.head.headerFields[name] != nil { kill(getpid(), SIGKILL) }
    return response
  }
}
#endif
