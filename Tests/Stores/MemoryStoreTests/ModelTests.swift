import CacheCore
import CacheTesting
import MemoryStore
import Testing

@Suite("A memory cache and a simple model of it")
struct ModelTests {
  @Test(
    "the cache and the model agree in 10,000 random operations, and the limits hold after each",
    arguments: [1, 2, 3, 4, 5] as [UInt64])
  func model(_ seed: UInt64) {
    // Given
    var generator = SplitMix(state: seed)
    let clock = ManualClock()
    let limits = MemoryCache.Limits(
      cost: Int.random(in: 50...400, using: &generator), count: Int.random(in: 5...40, using: &generator),
      entryCost: Int.random(in: 10...100, using: &generator))
    let cache = MemoryCache(limits: limits, eviction: LeastRecentlyUsed(), clock: clock)
    var model = ReferenceCache(limits: limits)

    for step in 0..<10_000 {
      // When
      let agrees = Self.operate(cache, &model, clock, step, &generator)

      // Then
      guard agrees, cache.totalCost == model.totalCost, cache.count == model.residents.count,
        cache.totalCost <= limits.cost, cache.count <= limits.count, model.agrees(with: cache.counters)
      else {
        Issue.record("step \(step): cost \(cache.totalCost), model \(model.totalCost); \(cache.counters), \(model)")
        return
      }
    }
    for name in 0..<60 {
      #expect(cache.entry(for: key("\(name)"))?.value(as: Int.self) == model.get(name, now: clock.now))
    }
    // Without these events the run would prove nothing.
    #expect(Set(cache.counters.evictions.keys).isSuperset(of: [.replaced, .removed, .expired, .trimmed]))
    #expect(cache.counters.evictions[.size, default: 0] + cache.counters.evictions[.count, default: 0] > 100)
    #expect(cache.counters.hits > 100)
  }

  /// Performs one random operation on both. Returns `false` if their results differ.
  private static func operate(
    _ cache: MemoryCache, _ model: inout ReferenceCache, _ clock: ManualClock, _ step: Int, _ generator: inout SplitMix
  ) -> Bool {
    let name = Int.random(in: 0..<60, using: &generator)
    switch Int.random(in: 0..<100, using: &generator) {
    case 0:
      let target = Int.random(in: -10...200, using: &generator)
      cache.trim(to: target)
      model.trim(to: target)
    case 1:
      cache.removeExpired()
      model.removeExpired(at: clock.now)
    case 2 where step.isMultiple(of: 7):
      cache.removeAll()
      model.removeAll()
    case 3...8:
      cache.remove(key("\(name)"))
      model.remove(name)
    case 9...14: clock.advance(by: .milliseconds(Int.random(in: 0...500, using: &generator)))
    case 15...54:
      let cost = Int.random(in: 0...110, using: &generator)
      let expiration: Expiration = Bool.random(using: &generator) ? .never : .after(.seconds(name % 4))
      return cache.insert(entry(step, cost: cost, expiration: expiration), for: key("\(name)"))
        == model.insert(.init(name: name, cost: cost, stamp: step, deadline: expiration.deadline(from: clock.now)))
    default:
      return cache.entry(for: key("\(name)"))?.value(as: Int.self) == model.get(name, now: clock.now)
    }
    return true
  }
}
