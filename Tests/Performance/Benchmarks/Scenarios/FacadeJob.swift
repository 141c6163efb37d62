import CAllocationCount
import CacheCore
import CacheManager
import CacheTesting
import DiskStore
import ETagValidation
import Foundation
import MemoryStore

/// Hits through `ResourceManager`: in memory, synchronous and `async`, and on disk, next to bare reads of as many files.
struct FacadeJob: Job {
  static let name = "facade"

  enum Hit: String, Codable, Hashable, Sendable, CaseIterable {
    case memory = "memory, synchronous"
    case memoryAsync = "memory, async"
    case disk
  }

  let hit: Hit
  /// The size of a body in bytes.
  let size: Int
  let entries: Int
  let batches: Int

  func run() async throws -> Measurement {
    let folder = try DiskEntries.folder()
    defer { try? FileManager.default.removeItem(atPath: folder) }
    let fixture = try await FacadeFixture(self, folder)
    var measurement = Measurement()
    // The first batch is the warm-up.
    for batch in 0...batches {
      switch hit {
      case .memory, .memoryAsync:
        let watch = Stopwatch()
        var found = 0
        for _ in 0..<20 { found += hit == .memory ? try fixture.memory() : try await fixture.memoryAsync() }
        // Processor time, because other work of the machine adds to the elapsed time.
        let time = watch.processor / .nanoseconds(1) / Double(entries * 20)
        let watchAlone = Stopwatch()
        for _ in 0..<20 { found += fixture.alone() }
        guard batch > 0 else { continue }
        measurement.add(time, to: .nanosecondsEach)
        measurement.add(watchAlone.processor / .nanoseconds(1) / Double(entries * 20), to: .aloneNanosecondsEach)
        measurement.check("hits", found, is: entries * 40)
        // Without a count of allocations on this platform, there is no figure.
        guard etagere_allocation_count() > 0 else { continue }
        // The program has no other work, so all allocations are those of the hits.
        etagere_count_allocations_of_all_threads()
        found = hit == .memory ? try fixture.memory() : try await fixture.memoryAsync()
        measurement.add(Double(etagere_allocations_of_all_threads()) / Double(found), to: .allocations)
      case .disk:
        let raw = try await Self.time { try fixture.raw() }
        let own = try await Self.time { try fixture.own() }
        let called = try await Self.time { try await fixture.called() }
        let facade = try await Self.time { try await fixture.facade() }
        guard batch > 0 else { continue }
        for (time, quantity) in [(raw, Measurement.Quantity.raw), (own, .own), (called, .called), (facade, .facade)] {
          measurement.add(time / .seconds(1) / Double(entries), to: quantity)
        }
      }
    }
    await fixture.cache.close()
    return measurement
  }

  private static func time(_ work: () async throws -> Void) async rethrows -> Duration {
    let clock = SystemClock()
    let start = clock.uptime
    try await work()
    return clock.uptime - start
  }
}

/// A filled cache with two managers, one with and one without a memory store, and as many bare files.
private struct FacadeFixture {
  let cache: DiskCache
  private let job: FacadeJob
  private let work: DiskWork
  private let manager: ResourceManager
  private let diskManager: ResourceManager
  private let memoryCache = MemoryCache(limits: .init(cost: 1 << 30))
  private let urls: [URL]
  /// The texts of the URLs, in other memory than the keys of the entries.
  private let texts: [String]
  private let keys: [CacheKey]
  private let paths: [String]

  init(_ job: FacadeJob, _ folder: String) async throws {
    self.job = job
    cache = try DiskCache(path: folder + "/cache", configuration: .init(sizeLimit: nil))
    work = DiskWork(cache)
    urls = (0..<job.entries).compactMap {
      URL(string: "https://images.example.com/photographs/2026/11/22/\(1_000_000 + $0).w")
    }
    texts = urls.map { String(decoding: Array($0.absoluteString.utf8), as: UTF8.self) }
    let files = folder + "/files"
    for shard in 0..<256 {
      try FileManager.default.createDirectory(atPath: "\(files)/\(shard)", withIntermediateDirectories: true)
    }
    paths = (0..<job.entries).map { "\(files)/\($0 % 256)/0123456789abcdef0123456789ab\(100_000 + $0)" }
    let body = Pattern.bytes(job.size)
    let network = ScriptedDownloader()
    var configuration = ResourceManager.Configuration()
    configuration.downloader = network
    configuration.store = cache
    configuration.validator = ETagValidator()
    diskManager = ResourceManager(configuration)
    configuration.memory = memoryCache
    manager = ResourceManager(configuration)
    for url in urls { network.respond(to: url, with: .ok(body, etag: "\"65a-1f2e3d4c\"", cacheControl: "public, max-age=86400")) }
    for (url, path) in zip(urls, paths) {
      _ = try await manager.load(url)
      try RawFile.write(body, path, draft: files + "/draft", flushes: false)
    }
    keys = try await cache.entries().map(\.key)
    try expect(keys.count == job.entries)
  }

  func memory() throws -> Int {
    var found = 0
    for url in urls where manager.cachedInMemory(url) != nil { found += 1 }
    return found
  }

  /// Looks up the bytes in the memory store alone, with keys made from strings.
  func alone() -> Int {
    var found = 0
    for text in texts where memoryCache.entry(for: CacheKey(resource: text)) != nil { found += 1 }
    return found
  }

  // On the cooperative pool, as in a server, and not on the main thread.
  @concurrent func memoryAsync() async throws -> Int {
    var found = 0
    for url in urls {
      if try await manager.load(url).source == .memory { found += 1 }
    }
    return found
  }

  func raw() throws {
    for path in paths { try expect(RawFile.read(path) == job.size) }
  }

  func own() throws {
    for key in keys { try expect(work.read(key) == job.size) }
  }

  @concurrent func called() async throws {
    for key in keys { try expect(try await cache.variants(of: key.resource).first?.body.data?.count == job.size) }
  }

  @concurrent func facade() async throws {
    for url in urls {
      let resource = try await diskManager.load(url)
      try expect(resource.source == .disk && resource.data.count == job.size)
    }
  }

  private func expect(_ isRight: Bool) throws {
    guard isRight else { throw BenchmarkFailure("\(job.hit.rawValue): an unexpected result") }
  }
}
