#if Redis
import CacheCore
import CacheTesting
import LocalRedis
import Testing

@testable import RedisStore

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// A server may remove any key at any time, and other programs may write to it.
@Suite("Redis store: evicted, damaged and foreign values", .enabled(if: RedisServer.isInstalled))
struct DamageTests {
  private let key = CacheKey(resource: "https://example.com/a")

  @Test("an entry whose body was evicted is a miss and is removed", arguments: [true, false])
  func evictedBody(isListed: Bool) async throws {
    let server = try await RedisServer()
    let cache = try server.cache()
    try await cache.store(bytes(200_000), for: key, metadata: metadata())
    try server.run(["DEL", try #require(try server.keys.first { $0.contains("}b") })])
    if isListed {
      #expect(try await cache.variants(of: key.resource).isEmpty)
    } else {
      #expect(try await cache.entry(for: key) == nil)
    }
    #expect(try server.keys == [])
    #expect(cache.counters.damaged == 1 && cache.counters.misses == 1 && cache.counters.hits == 0)
    await cache.close()
  }

  @Test("a body that is evicted while it is read ends with an error and not early")
  func evictedWhileReading() async throws {
    let server = try await RedisServer()
    let cache = try server.cache()
    let data = bytes(1_000_000)
    try await cache.store(data, for: key, metadata: metadata())
    let body = try #require(await cache.entry(for: key)).body
    #expect(try await body.source.next() == data.prefix(65_536))
    try server.run(["DEL", try #require(try server.keys.first { $0.contains("}b") })])
    #expect(await failure { while try await body.source.next() != nil {} }?.code == .damagedEntry)
    await cache.close()
  }

  @Test("an entry whose chunks were evicted while it was written is not committed, and the old entry stays")
  func evictedWhileWriting() async throws {
    let server = try await RedisServer()
    let cache = try server.cache()
    try await cache.store(Data("old".utf8), for: key, metadata: metadata())
    let writer = try await cache.makeWriter(for: key, metadata: metadata())
    try await writer.write(bytes(600_000))
    try server.run(["DEL", try #require(try server.keys.first { $0.contains("}b") })])
    try await writer.write(bytes(600_000))
    #expect(await failure { _ = try await writer.commit(trailers: nil) }?.code == .damagedEntry)
    #expect(try await cache.bytes(key) == Data("old".utf8))
    await cache.close()
  }

  @Test("a 304 for an entry whose body was evicted reports that the entry is gone")
  func evictedBeforeUpdate() async throws {
    let server = try await RedisServer()
    let cache = try server.cache()
    let entry = metadata()
    try await cache.store(bytes(200_000), for: key, metadata: entry)
    try server.run(["DEL", try #require(try server.keys.first { $0.contains("}b") })])
    #expect(try await !cache.updateMetadata(of: key, to: entry, ifRevision: entry.revision))
    #expect(try server.keys == [])
    await cache.close()
  }

  @Test("a changed byte anywhere in an entry is found", arguments: [0, 300])
  func damagedEntry(size: Int) async throws {
    let server = try await RedisServer()
    let cache = try server.cache()
    let data = bytes(size)
    try await cache.store(data, for: key, metadata: metadata())
    let (name, field) = cache.place(of: key)
    let reply = try await cache.engine.send([RedisCommand("HGET", .data(name), .data(field))], for: HashTag(key.resource))
    let whole = try #require(reply[0].bytes)
    // The last four bytes say that the entry is one of this schema.
    for position in 0..<whole.count - 4 {
      var changed = whole
      changed[position] ^= 0x20
      try server.run([Data("HSET".utf8), name, field, changed])
      #expect(try await cache.bytes(key) == nil, "byte \(position)")
      #expect(try await cache.variants(of: key.resource).isEmpty, "byte \(position)")
    }
    #expect(cache.counters.damaged >= whole.count - 4)
    try await cache.store(data, for: key, metadata: metadata())
    #expect(try await cache.bytes(key) == data)
    await cache.close()
  }

  @Test("a damaged entry is removed by a lookup of its key with its body, and the other variants stay")
  func damagedEntryIsRemoved() async throws {
    let server = try await RedisServer()
    let cache = try server.cache()
    let other = CacheKey(resource: key.resource, variant: "v")
    for key in [key, other] { try await cache.store(bytes(300), for: key, metadata: metadata()) }
    let (name, field) = cache.place(of: key)
    let reply = try await cache.engine.send([RedisCommand("HGET", .data(name), .data(field))], for: HashTag(key.resource))
    var changed = try #require(reply[0].bytes)
    changed[400] ^= 0x20
    try server.run([Data("HSET".utf8), name, field, changed])
    #expect(try await cache.variants(of: key.resource).map(\.key) == [other])
    #expect(try await cache.entry(for: key, range: 0..<0) == nil)
    #expect(try server.run([Data("HLEN".utf8), name]) == ":2")
    #expect(try await cache.entry(for: key) == nil)
    #expect(try server.run([Data("HLEN".utf8), name]) == ":1")
    #expect(try await cache.bytes(other) == bytes(300))
    #expect(cache.counters.damaged == 3)
    await cache.close()
  }

  @Test("a changed byte in a chunk ends the body with an error", arguments: [0, 1_000, 65_535, 65_536, 65_539])
  func damagedChunk(position: Int) async throws {
    let server = try await RedisServer()
    let cache = try server.cache()
    try await cache.store(bytes(200_000), for: key, metadata: metadata())
    let name = Data(try #require(try server.keys.first { $0.contains("}b") }).utf8)
    let reply = try await cache.engine.send(
      [RedisCommand("HGET", .data(name), "1", replyLimit: RedisCommand.entryReply)], for: HashTag(key.resource))
    var chunk = try #require(reply[0].bytes)
    chunk[position] ^= 1
    try server.run([Data("HSET".utf8), name, Data("1".utf8), chunk])
    #expect(await failure { _ = try await cache.bytes(key) }?.code == .damagedEntry)
    #expect(cache.counters.damaged == 1)
    await cache.close()
  }

  @Test("a value of another program under the name of a key is reported and not changed")
  func otherType() async throws {
    let server = try await RedisServer()
    let cache = try server.cache()
    let (name, _) = cache.place(of: key)
    try server.run([Data("SET".utf8), name, Data("mine".utf8)])
    for work in [
      { _ = try await cache.entry(for: key) }, { try await cache.store(bytes(10), for: key, metadata: metadata()) },
      { try await cache.remove(key, ifRevision: nil) },
    ] as [() async throws -> Void] {
      let error = await failure(work)
      #expect(error?.code == .unsupported)
      #expect(error?.reason.contains("WRONGTYPE") == true)
    }
    #expect(try await cache.entries().isEmpty)
    #expect(try server.run([Data("GET".utf8), name]) == "$4\r\nmine")
    await cache.close()
  }

  @Test("keys of other programs survive the removal of all entries")
  func otherKeys() async throws {
    let server = try await RedisServer()
    let cache = try server.cache()
    let others = ["session:1", "etagere", "etagere:0:{0123456789abcdef0123456789abcdef}v", "etagere:1:settings"]
    for name in others { try server.run(["SET", name, "x"]) }
    try await cache.store(bytes(200_000), for: key, metadata: metadata(tags: "news"))
    try await cache.removeAll()
    #expect(try Set(server.keys.filter { !$0.contains("}b") }) == Set(others))
    await cache.close()
  }

  @Test(
    "while a server evicts keys at random, a read returns a committed body or none, and never a mixture",
    arguments: [1, 2, 3] as [UInt64])
  func evictions(seed: UInt64) async throws {
    let server = try await RedisServer()
    let caches = [try server.cache(), try server.cache()]
    let keys = (0..<6).map { CacheKey(resource: "https://example.com/\($0)", variant: $0.isMultiple(of: 2) ? "" : "a=b") }
    let sizes = [0, 100, 65_536, 65_537, 300_000, 700_000]
    let found = try await withThrowingTaskGroup(of: Int.self) { group in
      for task in 0..<4 {
        group.addTask {
          var found = 0
          var random = SplitMix(state: seed &* 100 &+ UInt64(task))
          for _ in 0..<150 {
            let (key, cache) = (keys[Int(random.next() % 6)], caches[task % 2])
            switch random.next() % 8 {
            case 0...2:
              let size = sizes[Int(random.next() % 6)]
              let body = random.next()
              // The entity tag tells which body belongs to the metadata.
              let entry = metadata(etag: "\"\(size) \(body)\"")
              do { try await cache.store(bytes(size, seed: body), for: key, metadata: entry) } catch {
                guard (error as? CacheError)?.code == .damagedEntry else { throw error }
              }
            case 3:
              guard let entry = try await cache.entry(for: key, range: 0..<0) else { continue }
              _ = try await cache.updateMetadata(of: key, to: entry.metadata, ifRevision: entry.metadata.revision)
            case 4:
              if let name = try server.randomKey() { try server.run([Data("DEL".utf8), name]) }
            default:
              guard let entry = try await cache.entry(for: key) else { continue }
              let parts = (entry.metadata.response.headerFields[.eTag] ?? "").dropFirst().dropLast().split(separator: " ")
              let expected = bytes(Int(parts[0]) ?? -1, seed: UInt64(parts[1]) ?? 0)
              do {
                #expect(try await entry.body.collect() == expected)
                found += 1
              } catch {
                guard (error as? CacheError)?.code == .damagedEntry else { throw error }
              }
            }
          }
          return found
        }
      }
      return try await group.reduce(0, +)
    }
    #expect(found > 20)
    for cache in caches { await cache.close() }
  }
}

extension RedisCache {
  /// The key and the field of an entry, for commands that a test sends itself.
  func place(of key: CacheKey) -> (name: Data, field: Data) {
    let name = engine.names.entries(HashTag(key.resource), isTransform: !key.transform.isEmpty)
    return (Data(name), Data(KeyNames.field(key)))
  }
}

extension RedisServer {
  fileprivate func randomKey() throws -> Data? {
    let reply = try run(["RANDOMKEY"])
    return reply.hasPrefix("$-1") ? nil : reply.split(separator: "\r\n").last.map { Data($0.utf8) }
  }
}
#endif
