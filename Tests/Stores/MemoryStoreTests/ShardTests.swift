import CacheCore
import CacheTesting
import Testing

@testable import MemoryStore

@Suite("A memory cache with several shards")
struct ShardTests {
  @Test(
    "the number of shards follows from the limits",
    arguments: [(100, 1), (2_047, 1), (2_048, 2), (4_096, 4)])
  func number(_ count: Int, _ shards: Int) {
    let cache = MemoryCache(limits: .init(cost: .max, count: count))
    // There are at most four shards for each processor, and every machine has at least one processor.
    #expect(cache.shardCount == shards)
    #expect(MemoryCache(limits: .init(cost: count * (16 << 10))).shardCount == shards)
  }

  @Test("hashes of 32 and of 64 bits use all shards, by their high bits")
  func hashes() {
    #expect(Set((0..<64).map { ShardCount.shard(of: Int32(truncatingIfNeeded: UInt32($0) << 16), among: 64) }) == Set(0..<64))
    #expect(Set((0..<64).map { ShardCount.shard(of: Int64(truncatingIfNeeded: UInt64($0) << 48), among: 64) }) == Set(0..<64))
    #expect(ShardCount.shard(of: Int32(-1), among: 64) == 63)
  }

  @Test(
    "a requested number of shards is rounded down to a power of two from 1 to 64",
    arguments: [(-1, 1), (0, 1), (1, 1), (3, 2), (8, 8), (1_000, 64)])
  func askedFor(_ number: Int, _ shards: Int) {
    #expect(MemoryCache(shards: number).shardCount == shards)
  }

  @Test(
    "the cache behaves like a dictionary except for evictions, and its limits hold after each step", arguments: Policy.allCases,
    [1, 2, 8, 64])
  func model(_ policy: Policy, _ shards: Int) {
    // Given
    let limits = MemoryCache.Limits(cost: 300, count: 30, entryCost: 80)
    let clock = ManualClock()
    let cache = policy.cache(limits, clock: clock, shards: shards)
    var model: [Int: (stamp: Int, cost: Int, deadline: Timestamp)] = [:]
    var generator = SplitMix(state: UInt64(shards))

    for step in 0..<10_000 {
      // When
      let name = Int.random(in: 0..<60, using: &generator)
      switch Int.random(in: 0..<100, using: &generator) {
      case 0:
        cache.trim(to: 100)
        #expect(cache.totalCost <= 100)
      case 1: cache.removeExpired()
      case 2...6:
        cache.remove(key("\(name)"))
        model[name] = nil
      case 7...10: clock.advance(by: .milliseconds(300))
      case 11...60:
        let cost = Int.random(in: 0...90, using: &generator)
        let expiration: Expiration = name % 3 == 0 ? .after(.seconds(2)) : .never
        let isTaken = cache.insert(entry(step, cost: cost, expiration: expiration), for: key("\(name)"))
        #expect(isTaken == (cost <= limits.entryCost))
        model[name] = isTaken ? (step, cost, expiration.deadline(from: clock.now)) : nil
      default:
        let found = cache.entry(for: key("\(name)"))?.value(as: Int.self)
        let known = model[name].flatMap { clock.now < $0.deadline ? $0.stamp : nil }
        #expect(found == nil || found == known)
        if found == nil { model[name] = nil }
      }

      // Then
      guard cache.totalCost <= limits.cost, cache.count <= limits.count, cache.count <= model.count else {
        Issue.record("step \(step): \(cache.totalCost) bytes, \(cache.count) entries, the model has \(model.count)")
        return
      }
    }
    let kept = cache.keys().compactMap { key in model.first { MemoryStoreTests.key("\($0.key)") == key }?.value }
    cache.removeExpired()
    #expect(kept.reduce(0) { $0 + $1.cost } == cache.totalCost)
    #expect(kept.count == cache.count)
    let counters = cache.counters
    #expect(counters.insertions == counters.evictions.values.reduce(0, +) + cache.count)
    #expect(counters.hits > 300)
    #expect(counters.evictions[.size, default: 0] + counters.evictions[.count, default: 0] > 500)
  }

  @Test("an entry is accepted if only other shards can free space", arguments: Policy.allCases, [2, 8, 64])
  func spaceElsewhere(_ policy: Policy, _ shards: Int) {
    // Given: each entry costs half of the limit, so most shards are empty.
    let cache = policy.cache(.init(cost: 100, count: 2, entryCost: 60), shards: shards)
    for name in 0..<100 {
      // When
      #expect(cache.insert(entry(name, cost: 50), for: key("\(name)")))
      #expect(cache.update(key("\(name + 1_000)")) { _ in .replace(entry(name, cost: 60)) })

      // Then
      #expect(cache.entry(for: key("\(name + 1_000)"))?.value(as: Int.self) == name)
      #expect(cache.totalCost <= 100 && cache.count <= 2)
    }
    #expect(cache.counters.refusedInsertions == 0)
  }

  @Test("the shards become about equally full, whatever the initial distribution")
  func balance() {
    // Given: keys of one shard, which share the same bits, use all space.
    let cache = MemoryCache(limits: .init(cost: .max, count: 400), eviction: LeastRecentlyUsed(), shards: 8)
    let alike = (0..<10_000).map { key("first \($0)") }.filter { ($0.fingerprint >> 48) & 7 == 3 }.prefix(400)
    for key in alike { cache.insert(entry(), for: key) }
    #expect(alike.count == 400 && cache.count == 400)

    // When
    for number in 0..<4_000 { cache.insert(entry(), for: key("\(number)")) }

    // Then: no shard is starved, because otherwise its newest entries would be missing.
    let kept = (3_800..<4_000).count { cache.entry(for: key("\($0)")) != nil }
    #expect(kept >= 190)
    #expect(cache.count == 400)
  }

  @Test("with includesOverhead, the cost includes the key and 256 bytes")
  func keeping() {
    let cache = MemoryCache(limits: .init(cost: 1_000, entryCost: 1_000, includesOverhead: true), clock: ManualClock())
    let key = CacheKey(resource: "abcd", variant: "ef", transform: "é")
    cache.insert(entry(cost: 100), for: key)
    #expect(cache.totalCost == 100 + 4 + 2 + 2 + 256)
    #expect(!cache.insert(entry(cost: 900), for: key))
    #expect(!cache.insert(entry(cost: .max), for: key))
    #expect(cache.totalCost == 0)
  }
}
