#if Redis
import CacheCore
import CacheTesting
import HTTPTypes
import LocalRedis
import Testing

@testable import RedisStore

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Suite("Redis store: entries", .enabled(if: RedisServer.isInstalled))
struct EntryTests {
  private let key = CacheKey(resource: "https://example.com/a")

  @Test("a body of 50 MB is written and read in chunks")
  func large() async throws {
    let server = try await RedisServer()
    let cache = try server.cache()
    let chunk = bytes(1_000_000)
    let writer = try await cache.makeWriter(for: key, metadata: metadata())
    for _ in 0..<50 { try await writer.write(chunk) }
    let stored = try await writer.commit(trailers: nil)
    #expect(stored.bodyLength == 50_000_000)

    let body = try #require(await cache.entry(for: key)).body
    var (count, largest, isSame) = (0, 0, true)
    for try await piece in body {
      let start = count % chunk.count
      let first = piece.prefix(chunk.count - start)
      if first != chunk[start..<start + first.count] || piece.dropFirst(first.count) != chunk.prefix(piece.count - first.count) {
        isSame = false
      }
      count += piece.count
      largest = max(largest, piece.count)
    }
    #expect(isSame && count == 50_000_000)
    #expect(largest <= 65_536)
    await cache.close()
  }

  @Test("trailers are returned with the body")
  func trailers() async throws {
    let server = try await RedisServer()
    let cache = try server.cache()
    let writer = try await cache.makeWriter(for: key, metadata: metadata())
    try await writer.write(bytes(300_000))
    _ = try await writer.commit(trailers: [.server: "late"])
    let body = try #require(await cache.entry(for: key)).body
    _ = try await body.collect()
    #expect(body.source.trailers == [.server: "late"])
    await cache.close()
  }

  @Test("a discarded entry leaves no chunks in the server", arguments: [true, false])
  func discarded(isAborted: Bool) async throws {
    let server = try await RedisServer()
    let cache = try server.cache()
    do {
      let writer = try await cache.makeWriter(for: key, metadata: metadata())
      try await writer.write(bytes(1_000_000))
      #expect(try server.keys.count == 1)
      if isAborted { writer.abort() }
    }
    try await Polling.until { try server.keys.isEmpty }
    await cache.close()
  }

  @Test("chunks of a process that ended without a commit expire")
  func abandoned() async throws {
    let server = try await RedisServer()
    let cache = try server.cache()
    let writer = try await cache.makeWriter(for: key, metadata: metadata())
    try await writer.write(bytes(1_000_000))
    let left = try #require(Int(server.run(["PTTL", server.keys[0]]).dropFirst()))
    #expect((1...120_000).contains(left))
    writer.abort()
    await cache.close()
  }

  @Test("the body of a replaced, removed or purged entry expires, and the entry's record is gone at once")
  func replaced() async throws {
    let server = try await RedisServer()
    let cache = try server.cache { $0.replacedBodyRetention = .seconds(30) }
    for change in ["replace", "remove", "remove all"] {
      try await cache.store(bytes(200_000), for: key, metadata: metadata())
      let body = try #require(try server.keys.first { $0.contains("}b") })
      switch change {
      case "replace": try await cache.store(Data("new".utf8), for: key, metadata: metadata())
      case "remove": try await cache.remove(key, ifRevision: nil)
      default: try await cache.removeAll()
      }
      #expect(try await cache.bytes(key) == (change == "replace" ? Data("new".utf8) : nil))
      let left = try #require(Int(server.run(["PTTL", body]).dropFirst()))
      #expect((1...30_000).contains(left), "\(change)")
      try await cache.removeAll()
      try server.run(["DEL", body])
    }
    await cache.close()
  }

  @Test("an entry stays in the server while it is fresh, may be served stale, or can be revalidated")
  func timeToLive() async throws {
    let server = try await RedisServer()
    let cache = try server.cache { $0.staleRetention = .seconds(1_000) }
    let now = SystemClock().now
    var entry = metadata(at: now, fresh: .seconds(100))
    func left() throws -> [Int] { try server.keys.sorted().map { try #require(Int(server.run(["TTL", $0]).dropFirst())) } }

    try await cache.store(bytes(100), for: key, metadata: entry)
    #expect(try left().allSatisfy { (1_000...1_100).contains($0) })
    entry.freshness.staleWhileRevalidateUntil = now + .seconds(400)
    try await cache.store(bytes(100), for: key, metadata: entry)
    #expect(try left().allSatisfy { (1_300...1_400).contains($0) })
    entry.freshness.staleIfErrorUntil = now + .seconds(5_000)
    #expect(try await cache.updateMetadata(of: key, to: entry, ifRevision: entry.revision))
    #expect(try left().allSatisfy { (5_900...6_000).contains($0) })
    entry.expiration = .after(.seconds(50))
    try await cache.store(bytes(200_000), for: key, metadata: entry)
    #expect(try left().count == 2 && left().allSatisfy { (1...50).contains($0) })
    entry.expiration = .after(.seconds(500))
    #expect(try await cache.updateMetadata(of: key, to: entry, ifRevision: entry.revision))
    #expect(try left().allSatisfy { (400...500).contains($0) })
    await cache.close()
  }

  @Test("a short-lived variant does not shorten the life of another one")
  func variants() async throws {
    let server = try await RedisServer()
    let cache = try server.cache()
    var short = metadata()
    short.expiration = .after(.seconds(5))
    try await cache.store(bytes(10), for: CacheKey(resource: key.resource, variant: "a=b"), metadata: metadata())
    try await cache.store(bytes(10), for: CacheKey(resource: key.resource, variant: "a=c"), metadata: short)
    let left = try #require(Int(server.run(["TTL", server.keys[0]]).dropFirst()))
    #expect(left > 80_000)
    await cache.close()
  }

  @Test("a 304 sends the metadata and not the body")
  func update() async throws {
    let server = try await RedisServer()
    let cache = try server.cache { $0.connections = 1 }
    let entry = metadata()
    try await cache.store(bytes(1_000_000), for: key, metadata: entry)
    let before = try server.networkInput
    #expect(try await cache.updateMetadata(of: key, to: entry, ifRevision: entry.revision))
    #expect(try server.networkInput - before < 3_000)
    #expect(try await cache.bytes(key) == bytes(1_000_000))
    await cache.close()
  }

  @Test("the metadata of a stored body keeps its revision and length after a 304 that states neither")
  func updateKeepsBody() async throws {
    let server = try await RedisServer()
    let cache = try server.cache()
    let entry = metadata()
    try await cache.store(bytes(1_000), for: key, metadata: entry)
    #expect(try await cache.updateMetadata(of: key, to: metadata(etag: "\"b\""), ifRevision: entry.revision))
    let stored = try #require(await cache.entry(for: key)).metadata
    #expect(stored.revision == entry.revision && stored.bodyLength == 1_000)
    #expect(stored.response.headerFields[.eTag] == "\"b\"")
    await cache.close()
  }

  @Test("two caches on one server see each other's entries, and those of another namespace do not")
  func namespaces() async throws {
    let server = try await RedisServer()
    let (one, two, other) = (try server.cache(), try server.cache(), try server.cache { $0.namespace = "other" })
    try await one.store(bytes(100), for: key, metadata: metadata())
    #expect(try await two.bytes(key) == bytes(100))
    #expect(try await other.bytes(key) == nil)
    try await other.store(bytes(200), for: key, metadata: metadata())
    try await two.removeAll()
    #expect(try await one.bytes(key) == nil)
    #expect(try await other.bytes(key) == bytes(200))
    for cache in [one, two, other] { await cache.close() }
  }

  @Test("entries larger than the limit are refused, by their stated and by their real length")
  func limit() async throws {
    let server = try await RedisServer()
    let cache = try server.cache { $0.entrySizeLimit = 1_000 }
    var stated = metadata()
    stated.bodyLength = 1_001
    #expect(await failure { _ = try await cache.makeWriter(for: key, metadata: stated) }?.code == .entryTooLarge)
    #expect(await failure { try await cache.store(bytes(1_001), for: key, metadata: metadata()) }?.code == .entryTooLarge)
    try await cache.store(bytes(1_000), for: key, metadata: metadata())
    #expect(cache.counters.writes == 1 && cache.counters.failedWrites == 1)
    await cache.close()
  }

  @Test("after close, every call throws, also of open bodies and writers, and closing again does not")
  func closed() async throws {
    let server = try await RedisServer()
    let cache = try server.cache()
    try await cache.store(bytes(1_000_000), for: key, metadata: metadata())
    let body = try #require(await cache.entry(for: key)).body
    let writer = try await cache.makeWriter(for: key, metadata: metadata())
    await cache.close()
    await cache.close()
    #expect(await failure { _ = try await cache.entry(for: key) }?.code == .closed)
    #expect(await failure { try await cache.removeAll() }?.code == .closed)
    #expect(await failure { _ = try await body.collect() }?.code == .closed)
    #expect(await failure { _ = try await writer.commit(trailers: nil) }?.code == .closed)
    try await Polling.until { try server.run(["CLIENT", "LIST"]).split(separator: "\n").count { $0.contains("id=") } == 1 }
  }

  @Test("a released cache closes its connections")
  func released() async throws {
    let server = try await RedisServer()
    do { _ = try await server.cache().bytes(key) }
    try await Polling.until { try server.run(["CLIENT", "LIST"]).split(separator: "\n").count { $0.contains("id=") } == 1 }
  }
}

extension RedisServer {
  /// The number of bytes that the server has received.
  var networkInput: Int {
    get throws {
      let line = try run(["INFO", "stats"]).split(separator: "\r\n").first { $0.hasPrefix("total_net_input_bytes:") }
      return Int(line?.split(separator: ":").last ?? "") ?? 0
    }
  }
}
#endif
