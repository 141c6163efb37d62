import CacheCore
import CacheTesting
import MemoryStore
import Testing

@Suite("The counters of a memory cache")
struct CounterTests {
  @Test("the counters include hits, misses, insertions, refusals and every reason for leaving")
  func everyReason() {
    // Given
    let clock = ManualClock()
    let cache = MemoryCache(limits: .init(cost: 10, count: 3, entryCost: 8), eviction: LeastRecentlyUsed(), clock: clock)

    // When
    cache.insert(entry(cost: 1), for: key("replaced"))
    cache.insert(entry(cost: 1), for: key("replaced"))  // replaced
    cache.remove(key("replaced"))  // removed
    cache.insert(entry(cost: 1, expiration: .after(.seconds(1))), for: key("short"))
    clock.advance(by: .seconds(1))
    _ = cache.entry(for: key("short"))  // miss, expired
    _ = cache.entry(for: key("never"))  // miss
    cache.insert(entry(cost: 9), for: key("large"))  // refusal
    for name in ["a", "b", "c", "d"] { cache.insert(entry(cost: 1), for: key(name)) }  // count: a
    _ = cache.entry(for: key("b"))  // hit
    cache.insert(entry(cost: 8), for: key("e"))  // size: c, because b was used since
    cache.trim(to: 0)  // trimmed: all others

    // Then
    let counters = cache.counters
    #expect(counters.hits == 1)
    #expect(counters.misses == 2)
    #expect(counters.insertions == 8)
    #expect(counters.refusedInsertions == 1)
    #expect(
      counters.evictions == [.replaced: 1, .removed: 1, .expired: 1, .count: 1, .size: 1, .trimmed: 3])
  }

  @Test("the number of insertions equals the number of entries that have left or remain")
  func balance() {
    var generator = SplitMix(state: 7)
    let cache = MemoryCache.limited(cost: 50, count: 10)
    for _ in 0..<2_000 {
      let name = key("\(Int.random(in: 0..<30, using: &generator))")
      switch Int.random(in: 0..<5, using: &generator) {
      case 0: cache.remove(name)
      case 1: _ = cache.entry(for: name)
      default: cache.insert(entry(cost: Int.random(in: 0..<20, using: &generator)), for: name)
      }
    }
    let counters = cache.counters
    #expect(counters.insertions == counters.evictions.values.reduce(0, +) + cache.count)
    #expect(counters.insertions > 1_000)
  }
}
