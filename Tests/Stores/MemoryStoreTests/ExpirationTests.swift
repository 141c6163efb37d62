import CacheCore
import CacheTesting
import MemoryStore
import Testing

@Suite("The time to live in a memory cache")
struct ExpirationTests {
  private let clock = ManualClock()

  @Test("the cache's time to live applies to entries that state none")
  func defaultTime() {
    let cache = MemoryCache.limited(expiration: .after(.seconds(60)), clock: clock)
    cache.insert(entry("a"), for: key("a"))

    clock.advance(by: .seconds(59))
    #expect(cache.text("a") == "a")

    clock.advance(by: .seconds(1))
    #expect(cache.text("a") == nil)
    #expect(cache.count == 0)
    #expect(cache.totalCost == 0)
    #expect(cache.counters.evictions == [.expired: 1])
  }

  @Test(
    "an entry's own time to live takes precedence, whether shorter or longer",
    arguments: [
      (Expiration.after(.seconds(10)), 10), (.after(.seconds(100)), 100), (.at(Timestamp(seconds: 1_767_225_600 + 30)), 30),
    ])
  func ownTime(_ expiration: Expiration, _ seconds: Int) {
    let cache = MemoryCache.limited(expiration: .after(.seconds(60)), clock: clock)
    cache.insert(entry("a", expiration: expiration), for: key("a"))

    clock.advance(by: .seconds(seconds) - .nanoseconds(1))
    #expect(cache.text("a") == "a")

    clock.advance(by: .nanoseconds(1))
    #expect(cache.text("a") == nil)
  }

  @Test("an entry that never expires outlives the cache's time to live")
  func never() {
    let cache = MemoryCache.limited(expiration: .after(.seconds(1)), clock: clock)
    cache.insert(entry("a", expiration: .never), for: key("a"))
    clock.advance(by: .seconds(1 << 31))
    #expect(cache.text("a") == "a")
  }

  @Test(
    "a time to live that has already passed makes the entry a miss at once",
    arguments: [Expiration.after(.zero), .after(.seconds(-1)), .at(.distantPast)])
  func expiredAtOnce(_ expiration: Expiration) {
    let cache = MemoryCache.limited(clock: clock)
    cache.insert(entry("a", expiration: expiration), for: key("a"))
    #expect(cache.text("a") == nil)
    #expect(cache.count == 0)
  }

  @Test("a replacement restarts the time to live")
  func overwritingRestarts() {
    let cache = MemoryCache.limited(expiration: .after(.seconds(60)), clock: clock)
    cache.insert(entry("old"), for: key("a"))
    clock.advance(by: .seconds(59))
    cache.insert(entry("new"), for: key("a"))
    clock.advance(by: .seconds(59))
    #expect(cache.text("a") == "new")
  }

  @Test("reading does not extend the time to live")
  func doesNotSlide() {
    let cache = MemoryCache.limited(expiration: .after(.seconds(60)), clock: clock)
    cache.insert(entry("a"), for: key("a"))
    for _ in 0..<59 {
      clock.advance(by: .seconds(1))
      #expect(cache.text("a") == "a")
    }
    clock.advance(by: .seconds(1))
    #expect(cache.text("a") == nil)
  }

  @Test("with slidesOnRead, each read restarts the entry's own time to live")
  func slides() {
    // Given
    let cache = MemoryCache(
      limits: .init(cost: 100), expiration: .after(.seconds(60)), slidesOnRead: true, clock: clock)
    cache.insert(entry("default"), for: key("default"))
    cache.insert(entry("own", expiration: .after(.seconds(20))), for: key("own"))
    let end = clock.now + .seconds(100)
    cache.insert(entry("fixed", expiration: .at(end)), for: key("fixed"))

    // When, then
    for _ in 0..<6 {
      clock.advance(by: .seconds(16))
      #expect(cache.text("default") == "default")
      #expect(cache.text("own") == "own")
      #expect(cache.text("fixed") == "fixed")
    }
    clock.advance(by: .seconds(20))
    #expect(cache.text("default") == "default")
    #expect(cache.text("own") == nil)
    #expect(cache.text("fixed") == nil)
    clock.advance(by: .seconds(60))
    #expect(cache.text("default") == nil)
  }

  @Test("a sweep removes all expired entries and no others")
  func sweeps() {
    // Given
    let cache = MemoryCache.limited(clock: clock)
    for seconds in 1...10 { cache.insert(entry("\(seconds)", expiration: .after(.seconds(seconds))), for: key("\(seconds)")) }
    cache.insert(entry("endless"), for: key("endless"))

    // When
    clock.advance(by: .seconds(4))
    cache.removeExpired()

    // Then
    #expect(cache.count == 7)
    #expect(cache.totalCost == 7)
    #expect(cache.counters.evictions == [.expired: 4])
    #expect(cache.text("5") == "5")
    #expect(cache.text("endless") == "endless")
  }
}
