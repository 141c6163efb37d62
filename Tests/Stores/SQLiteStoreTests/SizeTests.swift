#if SQLite
import CacheCore
import CacheTesting
import SQLiteStore
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Suite("SQLite store: size and time to live")
struct SizeTests {
  private let clock = ManualClock()

  private func key(_ index: Int) -> CacheKey { CacheKey(resource: "https://example.com/\(index)") }

  @Test("every commit enforces the limit, and the least recently used entry is evicted first")
  func limit() async throws {
    let folder = try TemporaryFolder()
    let limit: Int64 = 55_000
    let cache = try SQLiteCache(path: folder.path, configuration: .init(sizeLimit: limit, clock: clock))
    for index in 0..<5 {
      try await cache.store(bytes(10_000), for: key(index), metadata: metadata(at: clock.now))
      clock.advance(by: .seconds(1))
    }
    #expect(try await cache.entry(for: key(0)) != nil)
    clock.advance(by: .seconds(1))

    try await cache.store(bytes(10_000), for: key(5), metadata: metadata(at: clock.now))
    #expect(try await cache.totalSize <= limit)
    #expect(try await cache.entry(for: key(0)) != nil)
    #expect(try await cache.entry(for: key(1)) == nil)
    #expect(cache.counters.evictions == [.size: 1])
    for index in 6..<30 {
      try await cache.store(bytes(7_000 + index), for: key(index), metadata: metadata(at: clock.now))
      #expect(try await cache.totalSize <= limit)
    }
    await cache.close()
  }

  @Test("an entry that does not fit alone is refused by stated or actual length, and others stay")
  func tooLarge() async throws {
    let folder = try TemporaryFolder()
    let cache = try SQLiteCache(path: folder.path, configuration: .init(sizeLimit: 1_000_000, entrySizeLimit: 600_000))
    try await cache.store(bytes(1_000), for: key(0), metadata: metadata())

    #expect(
      await failure { _ = try await cache.makeWriter(for: key(1), metadata: metadata(length: 600_001)) }?.code == .entryTooLarge)
    #expect(await failure { try await cache.store(bytes(600_001), for: key(1), metadata: metadata()) }?.code == .entryTooLarge)
    #expect(
      await failure { try await cache.store(Data(), for: key(1), metadata: metadata(padding: 999_999)) }?.code == .entryTooLarge)
    #expect(try await cache.entryCount == 1)
    #expect(cache.counters.failedWrites == 2)
    await cache.close()
  }

  @Test("the total matches the existing entries after every kind of change")
  func total() async throws {
    let folder = try TemporaryFolder()
    let cache = try SQLiteCache(path: folder.path)
    for index in 0..<10 { try await cache.store(bytes(1_000 * index), for: key(index), metadata: metadata(padding: index)) }
    try await cache.store(bytes(500_000), for: key(3), metadata: metadata())
    var fresh = metadata(padding: 5_000)
    let old = try #require(await cache.entry(for: key(4))).metadata
    fresh.revision = old.revision
    #expect(try await cache.updateMetadata(of: key(4), to: fresh, ifRevision: old.revision))
    try await cache.remove(key(5), ifRevision: nil)
    let writer = try await cache.makeWriter(for: key(6), metadata: metadata())
    try await writer.write(bytes(2_000_000))
    writer.abort()

    let expected = try await cache.entries { _, _ in true }.reduce(Int64(0)) { sum, entry in
      sum + (entry.metadata.bodyLength ?? 0) + Int64(entry.metadata.encoded().count + entry.key.resource.utf8.count)
    }
    #expect(try await cache.totalSize == expected)
    #expect(try await cache.entryCount == 9)
    #expect(try await cache.trim(to: 0) == 9)
    #expect(try await cache.totalSize == 0)
    await cache.close()
  }

  @Test("the time to live counts from the response, can be the entry's own, and is not extended by reads")
  func expiration() async throws {
    let folder = try TemporaryFolder()
    let cache = try SQLiteCache(path: folder.path, configuration: .init(expiration: .after(.seconds(60)), clock: clock))
    let stored = metadata(at: clock.now)
    try await cache.store(bytes(10), for: key(0), metadata: stored)
    try await cache.store(bytes(10), for: key(1), metadata: metadata(at: clock.now, expiration: .never))
    try await cache.store(bytes(10), for: key(2), metadata: metadata(at: clock.now, expiration: .after(.seconds(10))))

    clock.advance(by: .seconds(59))
    #expect(try await cache.entry(for: key(0)) != nil)
    #expect(try await cache.entry(for: key(2)) == nil)
    clock.advance(by: .seconds(1))
    #expect(try await cache.entry(for: key(0)) == nil)
    #expect(try await cache.entry(for: key(1)) != nil)
    await cache.cleared()
    #expect(cache.counters.evictions == [.expired: 2])
    #expect(try await cache.entryCount == 1)
    await cache.close()
  }

  @Test("a 304 restarts the time to live, and expired entries can be removed")
  func refreshed() async throws {
    let folder = try TemporaryFolder()
    let cache = try SQLiteCache(path: folder.path, configuration: .init(expiration: .after(.seconds(60)), clock: clock))
    let stored = try await cache.store(bytes(10), for: key(0), metadata: metadata(at: clock.now))
    try await cache.store(bytes(10), for: key(1), metadata: metadata(at: clock.now))
    clock.advance(by: .seconds(50))
    var confirmed = stored
    confirmed.responseTime = clock.now
    #expect(try await cache.updateMetadata(of: key(0), to: confirmed, ifRevision: stored.revision))
    clock.advance(by: .seconds(50))
    #expect(try await cache.removeExpired() == 1)
    #expect(try await cache.entry(for: key(0)) != nil)
    #expect(try await cache.entryCount == 1)
    await cache.close()
  }

  @Test("the file does not grow as entries are stored and evicted")
  func fileSize() async throws {
    let folder = try TemporaryFolder()
    let cache = try SQLiteCache(path: folder.path, configuration: .init(sizeLimit: 2_000_000, clock: clock))
    for index in 0..<300 {
      try await cache.store(bytes(100_000, seed: UInt64(index)), for: key(index), metadata: metadata(at: clock.now))
      clock.advance(by: .seconds(1))
    }
    await cache.close()
    let size = try FileManager.default.attributesOfItem(atPath: folder.database)[.size] as? Int
    #expect(try #require(size) < 4_000_000)
  }
}
#endif
