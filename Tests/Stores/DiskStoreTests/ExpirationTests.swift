import CacheCore
import CacheTesting
import DiskStore
import HTTPTypes
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Suite("Disk store: time to live")
struct ExpirationTests {
  let folder: TemporaryFolder
  let clock = ManualClock()
  let key = CacheKey(resource: "r")

  init() throws { folder = try TemporaryFolder() }

  private func cache(_ expiration: Expiration) throws -> DiskCache {
    try DiskCache(path: folder.path, configuration: .init(expiration: expiration, clock: clock))
  }

  @Test("an entry is found until its time to live ends, and is a miss from then on")
  func lifetime() async throws {
    let cache = try cache(.after(.seconds(60)))
    try await cache.store(bytes(5), for: key, metadata: metadata(at: clock.now))
    clock.advance(by: .seconds(60) - .nanoseconds(1))
    #expect(try await cache.bytes(key) == bytes(5))
    clock.advance(by: .nanoseconds(1))
    #expect(try await cache.bytes(key) == nil)
    #expect(folder.entryFiles.isEmpty)
    #expect(cache.counters.evictions[.expired] == 1)
    #expect(cache.counters.misses == 1)
  }

  @Test(
    "the metadata's time to live overrides the store's",
    arguments: [
      (Expiration.after(.seconds(60)), Expiration.never, true), (.never, .after(.seconds(60)), false),
      (.after(.seconds(1000)), .at(Timestamp(seconds: 1_767_225_650)), false), (.after(.zero), .after(.seconds(200)), true),
    ])
  func ownLifetime(store: Expiration, own: Expiration, isThere: Bool) async throws {
    let cache = try cache(store)
    try await cache.store(bytes(5), for: key, metadata: metadata(at: clock.now, expiration: own))
    clock.advance(by: .seconds(100))
    #expect((try await cache.bytes(key) != nil) == isThere)
  }

  @Test("an entry with a time to live of zero or less expires immediately", arguments: [0, -5])
  func noLifetime(seconds: Int) async throws {
    let cache = try cache(.after(.seconds(seconds)))
    try await cache.store(bytes(5), for: key, metadata: metadata(at: clock.now))
    #expect(try await cache.bytes(key) == nil)
    #expect(try await cache.variants(of: "r").isEmpty)
  }

  @Test("a 304 restarts the time to live, and a read does not")
  func restart() async throws {
    let cache = try cache(.after(.seconds(60)))
    let stored = try await cache.store(bytes(5), for: key, metadata: metadata(at: clock.now))
    clock.advance(by: .seconds(50))
    #expect(try await cache.bytes(key) != nil)
    #expect(
      try await cache.updateMetadata(of: key, to: metadata(revision: stored.revision, at: clock.now), ifRevision: stored.revision)
    )
    clock.advance(by: .seconds(50))
    #expect(try await cache.bytes(key) != nil)
    clock.advance(by: .seconds(10))
    #expect(try await cache.bytes(key) == nil)
  }

  @Test("a clock set back expires nothing, and a clock set forward expires entries")
  func clockSet() async throws {
    let cache = try cache(.after(.seconds(60)))
    try await cache.store(bytes(5), for: key, metadata: metadata(at: clock.now))
    let start = clock.now
    clock.setNow(Timestamp(seconds: 0))
    #expect(try await cache.bytes(key) != nil)
    clock.setNow(.distantPast)
    #expect(try await cache.bytes(key) != nil)
    clock.setNow(.distantFuture)
    try await cache.store(bytes(5), for: CacheKey(resource: "far"), metadata: metadata(at: clock.now))
    clock.setNow(start + .seconds(61))
    #expect(try await cache.bytes(key) == nil)
  }

  @Test("removing expired entries leaves other entries and damaged files")
  func sweep() async throws {
    let cache = try cache(.after(.seconds(60)))
    for number in 0..<6 {
      let expiration: Expiration? = number % 2 == 0 ? nil : .never
      try await cache.store(
        bytes(100_000), for: CacheKey(resource: "\(number)"), metadata: metadata(at: clock.now, expiration: expiration))
    }
    try await cache.store(bytes(100), for: key, metadata: metadata(at: clock.now))
    let small = try #require(folder.entryFiles.first { ((try? file($0).count) ?? 0) < 50_000 })
    try put(Data("x".utf8), small)
    #expect(try await cache.removeExpired() == 0)
    clock.advance(by: .seconds(60))
    #expect(try await cache.entries().count == 3)
    #expect(try await cache.removeExpired() == 3)
    #expect(cache.counters.evictions[.expired] == 3)
    #expect(folder.entryFiles.count == 4)
    for number in 0..<6 { #expect((try await cache.bytes(CacheKey(resource: "\(number)")) == nil) == (number % 2 == 0)) }
  }
}
