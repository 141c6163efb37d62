#if SQLite
import CacheCore
import SQLiteStore
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// A clock that is later for a lookup than for the transactions that follow it. An entry that the lookup found expired is valid
/// again by then, as after a 304 in between.
private struct TwofoldClock: CacheClock {
  @TaskLocal static var isLooking = false
  static let start = Timestamp(seconds: 1_767_225_600)

  var now: Timestamp { Self.isLooking ? Self.start + .seconds(61) : Self.start }
  var uptime: Duration { .zero }

  func sleep(for duration: Duration) async throws(CancellationError) {}
}

@Suite("SQLite store: entries that a lookup found expired")
struct LateExpirationTests {
  @Test("an expired entry is checked again before it is removed")
  func lookedAtAgain() async throws {
    let folder = try TemporaryFolder()
    let configuration = SQLiteCache.Configuration(expiration: .after(.seconds(60)), clock: TwofoldClock())
    let cache = try SQLiteCache(path: folder.path, configuration: configuration)
    let key = CacheKey(resource: "https://example.com/a")
    try await cache.store(bytes(10), for: key, metadata: metadata(at: TwofoldClock.start))

    let found = try await TwofoldClock.$isLooking.withValue(true) { try await cache.bytes(key) }
    #expect(found == nil)
    await cache.cleared()
    #expect(try await cache.bytes(key) == bytes(10))
    #expect(cache.counters.evictions.isEmpty)
    await cache.close()
  }
}
#endif
