import CacheCore
import CacheTesting
import MemoryStore
import Testing

@Suite("The eviction order of a memory cache")
struct EvictionTests {
  @Test("the least recently used entry is evicted")
  func leastRecentlyUsed() {
    // Given
    let cache = MemoryCache.limited(count: 3)
    for name in ["a", "b", "c"] { cache.insert(entry(name), for: key(name)) }

    // When: "b" is the oldest when "d" comes, "a" when "e" comes.
    _ = cache.entry(for: key("a"))
    cache.insert(entry("d"), for: key("d"))
    _ = cache.entry(for: key("c"))
    cache.insert(entry("e"), for: key("e"))

    // Then
    #expect(["a", "b", "c", "d", "e"].filter { cache.text($0) != nil } == ["c", "d", "e"])
  }

  @Test("a replacement counts as a use")
  func overwritingIsUsing() {
    let cache = MemoryCache.limited(count: 2)
    cache.insert(entry("a"), for: key("a"))
    cache.insert(entry("b"), for: key("b"))
    cache.insert(entry("a again"), for: key("a"))
    cache.insert(entry("c"), for: key("c"))
    #expect(cache.text("a") == "a again")
    #expect(cache.text("b") == nil)
  }

  @Test("a miss does not change the order")
  func missesDoNotCount() {
    let cache = MemoryCache.limited(count: 2)
    cache.insert(entry("a"), for: key("a"))
    cache.insert(entry("b"), for: key("b"))
    for _ in 0..<10 { _ = cache.entry(for: key("nothing")) }
    cache.insert(entry("c"), for: key("c"))
    #expect(["a", "b", "c"].filter { cache.text($0) != nil } == ["b", "c"])
  }

  @Test("the caller's own policy decides")
  func firstInFirstOut() {
    // Given
    let cache = MemoryCache(
      limits: .init(cost: 100, count: 3), eviction: FirstInFirstOut(), clock: ManualClock())
    for name in ["a", "b", "c"] { cache.insert(entry(name), for: key(name)) }

    // When: the first entry is used most often, but still leaves first.
    for _ in 0..<10 { _ = cache.entry(for: key("a")) }
    cache.insert(entry("d"), for: key("d"))

    // Then
    #expect(["a", "b", "c", "d"].filter { cache.text($0) != nil } == ["b", "c", "d"])
  }

  @Test(
    "if the policy evicts no entry, the new entry is refused and the limits hold",
    arguments: [(10, Int.max), (1_000, 2)])
  func policyWithoutVictim(_ cost: Int, _ count: Int) {
    let cache = MemoryCache(
      limits: .init(cost: cost, count: count, entryCost: cost), eviction: Pinning(), clock: ManualClock())
    #expect(cache.insert(entry("a", cost: 5), for: key("a")))
    #expect(cache.insert(entry("b", cost: 5), for: key("b")))

    #expect(!cache.insert(entry("c", cost: 5), for: key("c")))

    #expect(cache.count == 2)
    #expect(cache.totalCost == 10)
    #expect(cache.text("c") == nil)
    #expect(cache.counters.refusedInsertions == 1)
  }

  @Test("if the policy returns an empty slot, no entry is evicted", .timeLimit(.minutes(30)), arguments: [-1, 7, 1_000])
  func policyWithWrongVictim(_ slot: Int) {
    let cache = MemoryCache(
      limits: .init(cost: 10, count: 1), eviction: Mistaken(slot: slot), clock: ManualClock())
    cache.insert(entry("a"), for: key("a"))

    #expect(!cache.insert(entry("b"), for: key("b")))
    cache.trim(to: 0)

    #expect(cache.text("a") == "a")
    #expect(cache.count == 1)
  }
}

/// A policy that evicts no entry.
private struct Pinning: EvictionPolicy {
  mutating func insert(_ slot: Int, fingerprint: Int, cost: Int) {}
  mutating func access(_ slot: Int) {}
  mutating func remove(_ slot: Int) {}
  mutating func evict(toFit cost: Int) -> Int? { nil }
}

/// A policy that always returns the same slot, even if it is empty.
private struct Mistaken: EvictionPolicy {
  let slot: Int

  mutating func insert(_ slot: Int, fingerprint: Int, cost: Int) {}
  mutating func access(_ slot: Int) {}
  mutating func remove(_ slot: Int) {}
  mutating func evict(toFit cost: Int) -> Int? { slot }
}
