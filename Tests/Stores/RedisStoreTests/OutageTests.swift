#if Redis
import CacheCore
import CacheManager
import CacheTesting
import ETagValidation
import HTTPTypes
import LocalRedis
import LoopbackOrigin
import RedisStore
import StoreComposition
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Suite("Redis store: servers that are unavailable, slow, full or not Redis", .enabled(if: RedisServer.isInstalled))
struct OutageTests {
  private let key = CacheKey(resource: "https://example.com/a")

  @Test("without a server, calls fail by name, and a cache works as soon as the server runs")
  func late() async throws {
    let server = try await RedisServer(isStarted: false)
    let cache = try server.cache { $0.longestRetryInterval = .milliseconds(50) }
    let error = await failure { try await cache.store(bytes(10), for: key, metadata: metadata()) }
    #expect(error?.code == .storeUnavailable)
    #expect(error?.reason.contains(server.folder) == true)
    #expect(await failure { _ = try await cache.entry(for: key) }?.code == .storeUnavailable)
    #expect(cache.counters.failedCalls == 2)
    try await server.start()
    try await Polling.until { (try? await cache.store(bytes(10), for: key, metadata: metadata())) != nil }
    #expect(try await cache.bytes(key) == bytes(10))
    await cache.close()
  }

  @Test("a killed server is an error and not a hang, and the cache works again after a restart")
  func restarted() async throws {
    let server = try await RedisServer()
    let cache = try server.cache { $0.longestRetryInterval = .milliseconds(50) }
    try await cache.store(bytes(10), for: key, metadata: metadata())
    for _ in 0..<3 {
      let readers = (0..<20).map { _ in Task { try? await cache.entry(for: key) } }
      server.kill()
      for reader in readers { _ = await reader.value }
      try await Polling.until { await failure { _ = try await cache.entry(for: key) }?.code == .storeUnavailable }
      try await server.start()
      // The server has lost the entries and the scripts.
      try await Polling.until { (try? await cache.store(bytes(20), for: key, metadata: metadata())) != nil }
      #expect(try await cache.bytes(key) == bytes(20))
    }
    #expect(cache.counters.lostConnections >= 3)
    await cache.close()
  }

  @Test("a server that stops replying fails the waiting calls after the timeout and later ones without waiting")
  func paused() async throws {
    let server = try await RedisServer()
    let cache = try server.cache {
      $0.timeout = .milliseconds(200)
      $0.longestRetryInterval = .milliseconds(50)
    }
    // The first reply can be late on a busy machine.
    try await Polling.until { (try? await cache.store(bytes(10), for: key, metadata: metadata())) != nil }
    server.pause()
    let error = await failure { while true { _ = try await cache.entry(for: key) } }
    #expect(error?.code == .storeUnavailable)
    #expect(error?.reason.contains("did not reply") == true)
    // A call that waited would need 200 ms.
    for _ in 0..<1_000 { #expect(await failure { _ = try await cache.entry(for: key) }?.code == .storeUnavailable) }
    server.resume()
    try await Polling.until { (try? await cache.bytes(key)) == bytes(10) }
    await cache.close()
  }

  @Test("a cancelled call does not wait for a server that stops replying")
  func cancelled() async throws {
    let server = try await RedisServer()
    let cache = try server.cache()
    try await cache.store(bytes(10), for: key, metadata: metadata())
    #expect(cache.boundsLookupTime)
    server.pause()
    let read = Task { try await cache.bytes(key) }
    let lookup = Task { try await cache.variants(of: key.resource) }
    read.cancel()
    for _ in 0..<100 { await Task.yield() }
    lookup.cancel()
    #expect(await failure { _ = try await read.value }?.isCancellation == true)
    #expect(await failure { _ = try await lookup.value }?.isCancellation == true)
    server.resume()
    #expect(try await cache.bytes(key) == bytes(10))
    await cache.close()
  }

  @Test("commands beyond the limit of pending ones are refused at once")
  func overloaded() async throws {
    let server = try await RedisServer()
    let cache = try server.cache {
      $0.connections = 1
      $0.pendingCallLimit = 2
    }
    try await cache.store(bytes(10), for: key, metadata: metadata())
    server.pause()
    let waiting = (0..<2).map { _ in Task { try await cache.bytes(key) } }
    let error = Lock<CacheError?>(nil)
    try await Polling.until {
      let task = Task { await failure { _ = try await cache.entry(for: key) } }
      // A call that is not refused waits for the server.
      for _ in 0..<10 { await Task.yield() }
      task.cancel()
      let outcome = await task.value
      error.withLock { $0 = outcome }
      return outcome?.code == .overloaded
    }
    server.resume()
    for task in waiting { _ = try? await task.value }
    #expect(error.withLock { $0 }?.code == .overloaded)
    #expect(cache.counters.failedCalls >= 1)
    await cache.close()
  }

  @Test("a full server refuses new entries by name and continues to return the stored ones")
  func full() async throws {
    let server = try await RedisServer(["--maxmemory", "5mb", "--maxmemory-policy", "noeviction"])
    let cache = try server.cache()
    try await cache.store(bytes(100_000), for: key, metadata: metadata())
    var error: CacheError?
    for number in 0..<100 where error == nil {
      error = await failure {
        try await cache.store(bytes(100_000), for: CacheKey(resource: "\(number)"), metadata: metadata())
      }
    }
    #expect(error?.code == .diskFull)
    #expect(try await cache.bytes(key) == bytes(100_000))
    #expect(cache.counters.failedWrites == 1)
    await cache.close()
  }

  @Test("a server that evicts keys under memory pressure accepts entries without end")
  func evicting() async throws {
    let server = try await RedisServer(["--maxmemory", "5mb", "--maxmemory-policy", "allkeys-lru"])
    let cache = try server.cache()
    var found = 0
    for number in 0..<200 {
      let key = CacheKey(resource: "https://example.com/\(number)")
      do {
        try await cache.store(bytes(70_000, seed: UInt64(number)), for: key, metadata: metadata())
      } catch {
        // The body itself was evicted, or nothing could be evicted at this moment.
        #expect(error.code == .damagedEntry || error.code == .diskFull)
      }
      if let body = try await cache.bytes(key) {
        #expect(body == bytes(70_000, seed: UInt64(number)))
        found += 1
      }
    }
    #expect(found > 0)
    await cache.close()
  }

  @Test("a read-only replica refuses new entries by name and returns the stored ones")
  func replica() async throws {
    let server = try await RedisServer()
    let cache = try server.cache { $0.connections = 1 }
    try await cache.store(bytes(100), for: key, metadata: metadata())
    // No server listens there, so the replica keeps what it has.
    try server.run(["REPLICAOF", "127.0.0.1", "1"])
    #expect(await failure { try await cache.store(bytes(10), for: key, metadata: metadata()) }?.code == .readOnly)
    #expect(await failure { try await cache.remove(key, ifRevision: nil) }?.code == .readOnly)
    #expect(try await cache.bytes(key) == bytes(100))
    // The connection was closed once, so that the address is resolved again.
    #expect(cache.counters.lostConnections == 1)
    await cache.close()
  }

  @Test("a flushed server is an empty one")
  func flushed() async throws {
    let server = try await RedisServer()
    let cache = try server.cache()
    try await cache.store(bytes(100), for: key, metadata: metadata())
    try server.run(["FLUSHALL"])
    try server.run(["SCRIPT", "FLUSH"])
    #expect(try await cache.bytes(key) == nil)
    try await cache.store(bytes(200_000), for: key, metadata: metadata())
    #expect(try await cache.bytes(key) == bytes(200_000))
    await cache.close()
  }

  @Test("a server that does not speak the protocol is named")
  func garbage() async throws {
    let origin = try await OriginServer.start()
    let url = try #require(URL(string: "redis://127.0.0.1:\(origin.port)"))
    let cache = try RedisCache(
      url: url, configuration: .init { ($0.timeout, $0.connectTimeout) = (.seconds(60), .seconds(60)) })
    let error = await failure { _ = try await cache.entry(for: key) }
    #expect(error?.code == .storeUnavailable)
    #expect(error?.reason.contains("127.0.0.1:\(origin.port)") == true)
    #expect(error?.reason.contains("does not speak the Redis protocol") == true)
    await cache.close()
    await origin.stop()
  }

  private static func manager(
    _ origin: ScriptedDownloader, _ store: any CacheStore, _ observer: RecordingObserver? = nil
  ) -> ResourceManager {
    ResourceManager(
      .init {
        $0.downloader = origin
        $0.store = store
        $0.validator = ETagValidator()
        $0.observer = observer
        // On a busy machine, loads would not wait for the server.
        ($0.storeReadTimeout, $0.storeWriteTimeout) = (nil, nil)
      })
  }

  @Test(
    "a load continues without the server, the observer receives the error, and Cache-Status names it", arguments: [false, true])
  func load(isLayered: Bool) async throws {
    let server = try await RedisServer(isStarted: false)
    let cache = try server.cache()
    let url = try #require(URL(string: "https://example.com/a"))
    let (origin, observer) = (ScriptedDownloader(), RecordingObserver())
    origin.serve(url) { _ in .ok("x", etag: "\"1\"", cacheControl: "max-age=600") }
    let store: any CacheStore = isLayered ? try LayeredStore([VolatileStore(), cache]) : cache
    let manager = Self.manager(origin, store, observer)
    let response = try await manager.respond(to: HTTPRequest(resource: url))
    #expect(try await response.body.collect() == Data("x".utf8))
    let status = "\(response.status)"
    #expect(status.contains("fwd=uri-miss") && status.hasSuffix("detail=storeUnavailable"), "\(status)")
    await manager.close()
    let failures = observer.events.compactMap { if case .readFailed(_, let error) = $0 { error.code } else { nil } }
    #expect(failures == [.storeUnavailable])
    await cache.close()
  }

  @Test("without the server, the other layers get responses and values, and the observer is told of failed reads alone")
  func values() async throws {
    let server = try await RedisServer(isStarted: false)
    let cache = try server.cache()
    let (origin, observer, disk) = (ScriptedDownloader(), RecordingObserver(), VolatileStore())
    let url = try #require(URL(string: "https://example.com/a"))
    origin.serve(url) { request in
      request.headerFields.contains(.ifNoneMatch)
        ? .notModified(etag: "\"1\"", cacheControl: "max-age=0") : .ok("text", etag: "\"1\"", cacheControl: "max-age=0")
    }
    let store = try LayeredStore([disk, cache])
    let manager = Self.manager(origin, store, observer)
    for _ in 0..<2 { #expect(try await manager.load(url, as: Self.initial).value == "t") }
    await manager.close()
    #expect(Set(disk.keys.map(\.transform)) == ["", Self.initial.id])
    #expect(observer.events.contains { if case .revalidated = $0 { true } else { false } })
    #expect(observer.events.contains { if case .readFailed = $0 { true } else { false } })
    #expect(!observer.events.contains { if case .storeFailed = $0 { true } else { false } })
    await cache.close()
  }

  /// The first character of a text, which is stored.
  private static let initial = ResourceTransform(decoder: TextDecoder()).map("initial") { String($0.prefix(1)) }
    .stored(as: "text") {
      Data($0.utf8)
    } decode: {
      String(decoding: $0, as: UTF8.self)
    }

  private struct TextDecoder: ResourceDecoder {
    let id = ComponentID(TextDecoder.self, parameters: "utf8")

    func decode(_ data: Data, _: StoredMetadata) throws(CacheError) -> String { String(decoding: data, as: UTF8.self) }

    func cost(of value: String) -> Int { value.utf8.count }
  }

  @Test("a removal without the server throws, and removes what the other layers have", arguments: [0, 2])
  func removal(count: Int) async throws {
    let server = try await RedisServer(isStarted: false)
    let cache = try server.cache()
    let disk = VolatileStore()
    let url = try #require(URL(string: "https://example.com/a"))
    let store = try LayeredStore([disk, cache])
    let manager = ResourceManager(.init { $0.store = store })
    for number in 0..<count {
      try await disk.store(Data("small".utf8), for: key.with(transform: "size \(number)"), metadata: metadata())
    }
    #expect(await failure { try await manager.remove(url) }?.code == .storeUnavailable)
    #expect(disk.keys.isEmpty)
    await manager.close()
    await cache.close()
  }

  @Test("a manager is not current before it has joined the fleet")
  func joining() async throws {
    let server = try await RedisServer(isStarted: false)
    let cache = try server.cache { $0.longestRetryInterval = .milliseconds(50) }
    let manager = ResourceManager(
      .init {
        $0.store = cache
        $0.fleet = RedisFleet(cache, memberTimeout: .seconds(10))
      })
    #expect(!manager.isCurrentInFleet)
    try await server.start()
    try await Polling.until { manager.isCurrentInFleet }
    await manager.close()
    #expect(!manager.isCurrentInFleet)
    await cache.close()
  }

  @Test(
    "a purge without the server throws, and removes the copies of its own machine",
    arguments: ["url", "tag", "everything"])
  func purge(_ selection: String) async throws {
    let server = try await RedisServer()
    let cache = try server.cache()
    let disk = VolatileStore()
    let url = try #require(URL(string: "https://example.com/a"))
    let origin = ScriptedDownloader()
    let tag = try #require(HTTPField.Name("Cache-Tag"))
    origin.serve(url) { _ in .ok("x", etag: "\"1\"", cacheControl: "max-age=600", fields: [tag: "news"]) }
    let store = try LayeredStore([disk, cache])
    let manager = Self.manager(origin, store)
    _ = try await manager.load(url)
    #expect(disk.keys.count == 1)
    server.kill()
    try await Polling.until { await failure { _ = try await cache.entry(for: key) }?.code == .storeUnavailable }
    let purged: [String: PurgeSelection] = ["url": .url(url), "tag": .tag("news")]
    let error = await failure { try await manager.purge(purged[selection] ?? .everything) }
    #expect(error?.code == .storeUnavailable)
    #expect(disk.keys.isEmpty)
    await manager.close()
    await cache.close()
  }

  @Test("a layered store serves its other layers while the server is away")
  func layered() async throws {
    let server = try await RedisServer(isStarted: false)
    let cache = try server.cache()
    let store = try LayeredStore([VolatileStore(), cache])
    try await store.store(bytes(100), for: key, metadata: metadata())
    #expect(try await store.entry(for: key)?.body.collect() == bytes(100))
    #expect(store.counters.layers[1].failures > 0)
    await cache.close()
  }
}
#endif
