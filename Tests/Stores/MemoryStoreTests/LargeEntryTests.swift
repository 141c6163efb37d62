import CacheCore
import CacheTesting
import MemoryStore
import Testing

@Suite("A large new entry in a memory cache of many small entries")
struct LargeEntryTests {
  private static let small = 10
  private static let limit = 64_000

  /// Returns the number of small entries that remain in each of `parts` shards, and the fraction of entries in use that remain.
  private static func admit(cost: Int, _ policy: Policy, shards: Int, parts: Int) -> (kept: [Int], hot: Double) {
    // Given: every fifth entry is in use, and the store is full.
    let cache = policy.cache(.init(cost: limit), shards: shards)
    let names = 0..<(limit / small)
    for name in names { cache.insert(entry(cost: small), for: key("\(name)")) }
    for _ in 0..<3 {
      for name in names where name.isMultiple(of: 5) { _ = cache.entry(for: key("\(name)")) }
    }
    #expect(cache.totalCost > limit - small)

    // When
    #expect(cache.insert(entry("large", cost: cost), for: key("large")))

    // Then
    #expect(cache.totalCost <= limit)
    #expect(cache.text("large") == "large")
    #expect(cache.counters.refusedInsertions == 0)
    #expect(cache.counters.evictions == [.size: (cost + small - 1) / small])
    var kept = Array(repeating: 0, count: parts)
    for key in cache.keys() where key != MemoryStoreTests.key("large") { kept[(key.fingerprint >> 48) & (parts - 1)] += 1 }
    let hot = names.filter { $0.isMultiple(of: 5) }
    return (kept, Double(hot.count { cache.entry(for: key("\($0)")) != nil }) / Double(hot.count))
  }

  @Test(
    "every shard evicts a little, and entries in use remain nearly as with one shard", arguments: Policy.allCases,
    [64_000 / 4, 64_000 / 40])
  func spreads(_ policy: Policy, _ cost: Int) throws {
    let one = Self.admit(cost: cost, policy, shards: 1, parts: 1)
    let many = Self.admit(cost: cost, policy, shards: 32, parts: 32)
    // Each shard has about 200 before. When a quarter of the cache is evicted, each has lost about 50.
    #expect(try #require(many.kept.min()) > 80)
    #expect(many.hot >= one.hot - 0.05)
  }

  @Test("a large entry gets its space even if a single shard has all the entries", arguments: Policy.allCases, [0, 3, 7])
  func oneGiver(_ policy: Policy, _ giver: Int) {
    // Given: all small entries are in one shard.
    let cache = policy.cache(.init(cost: 1_000), shards: 8)
    let alike = (0..<5_000).map { key("\($0)") }.filter { ($0.fingerprint >> 48) & 7 == giver }.prefix(100)
    for key in alike { cache.insert(entry(cost: 10), for: key) }
    #expect(cache.totalCost == 1_000)

    // When
    let isTaken = cache.insert(entry(cost: 250), for: key("large"))

    // Then: no more entries than necessary were evicted.
    #expect(isTaken)
    #expect(cache.counters.evictions == [.size: 25])
    #expect(cache.counters.refusedInsertions == 0)
  }
}
