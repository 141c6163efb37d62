import CacheCore
import CacheTesting
import MemoryStore
import Testing

@Suite("A large newcomer in a memory cache of many small entries")
struct LargeNewcomerTests {
  private static let small = 10
  private static let limit = 64_000

  /// How many small entries each of `parts` shards keeps, and which part of those in use is still there.
  private static func admit(cost: Int, _ policy: Policy, shards: Int, parts: Int) -> (kept: [Int], hot: Double) {
    // Given: every fifth entry is in use, the store is full.
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
    #expect(cache.counters.refusals == 0)
    #expect(cache.counters.evictions == [.size: (cost + small - 1) / small])
    var kept = Array(repeating: 0, count: parts)
    for key in cache.keys() where key != MemoryStoreTests.key("large") { kept[(key.fingerprint >> 48) & (parts - 1)] += 1 }
    let hot = names.filter { $0.isMultiple(of: 5) }
    return (kept, Double(hot.count { cache.entry(for: key("\($0)")) != nil }) / Double(hot.count))
  }

  @Test(
    "takes from every shard a little, and leaves what is in use nearly as one shard does", arguments: Policy.allCases,
    [64_000 / 4, 64_000 / 40])
  func spreads(_ policy: Policy, _ cost: Int) throws {
    let one = Self.admit(cost: cost, policy, shards: 1, parts: 1)
    let many = Self.admit(cost: cost, policy, shards: 32, parts: 32)
    // 200 each, more or less, before; with a quarter of all gone, each has given about 50.
    #expect(try #require(many.kept.min()) > 80)
    #expect(many.hot >= one.hot - 0.05)
  }

  @Test("finds its room where one shard holds it all", arguments: Policy.allCases, [0, 3, 7])
  func oneGiver(_ policy: Policy, _ giver: Int) {
    // Given: small entries of one shard only.
    let cache = policy.cache(.init(cost: 1_000), shards: 8)
    let alike = (0..<5_000).map { key("\($0)") }.filter { ($0.fingerprint >> 48) & 7 == giver }.prefix(100)
    for key in alike { cache.insert(entry(cost: 10), for: key) }
    #expect(cache.totalCost == 1_000)

    // When
    let isTaken = cache.insert(entry(cost: 250), for: key("large"))

    // Then: nobody had to leave for nothing.
    #expect(isTaken)
    #expect(cache.counters.evictions == [.size: 25])
    #expect(cache.counters.refusals == 0)
  }
}
