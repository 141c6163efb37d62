import CacheCore
import CacheTesting
import MemoryStore
import Testing

@Suite("A memory cache with eight concurrent tasks")
struct ConcurrencyTests {
  @Test("the limits hold at every moment, and values are never mixed up", arguments: Policy.allCases, [1, 4, 16])
  func bounds(_ policy: Policy, _ shards: Int) async {
    // Given
    let clock = ManualClock()
    let cache = MemoryCache(
      limits: .init(cost: 200, count: 20, entryCost: 50), expiration: .after(.seconds(5)), eviction: policy.made, clock: clock,
      shards: shards)

    // When
    let mistakes = await withTaskGroup(of: Int.self) { group in
      for task in 0..<8 {
        group.addTask { Self.hammer(cache, clock, seed: UInt64(task)) }
      }
      return await group.reduce(0, +)
    }

    // Then
    #expect(mistakes == 0)
    let counters = cache.counters
    #expect(counters.insertions == counters.evictions.values.reduce(0, +) + cache.count)
    cache.removeAll()
    #expect(cache.totalCost == 0)
    #expect(cache.count == 0)
  }

  /// Returns the number of exceeded limits and of wrong values.
  private static func hammer(_ cache: MemoryCache, _ clock: ManualClock, seed: UInt64) -> Int {
    var generator = SplitMix(state: seed)
    var mistakes = 0
    for _ in 0..<2_000 {
      let name = "\(Int.random(in: 0..<60, using: &generator))"
      switch Int.random(in: 0..<20, using: &generator) {
      case 0: cache.remove(key(name))
      case 1: cache.trim(to: 100)
      case 2: clock.advance(by: .milliseconds(1))
      case 3: cache.removeExpired()
      case 4 where seed == 0: cache.removeAll()
      case 4:
        cache.update(key(name)) { found in
          if let text = found?.value(as: String.self), text != name { mistakes += 1 }
          return .replace(entry(name, cost: 30))
        }
      case 5...12: cache.insert(entry(name, cost: Int.random(in: 0...60, using: &generator)), for: key(name))
      default: if let found = cache.text(name), found != name { mistakes += 1 }
      }
      if cache.totalCost > 200 || cache.count > 20 { mistakes += 1 }
    }
    return mistakes
  }
}
