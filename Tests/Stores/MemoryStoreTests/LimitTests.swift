import CacheCore
import CacheTesting
import Testing

@testable import MemoryStore

@Suite("The limits of a memory cache")
struct LimitTests {
  @Test("the cost limit holds, and the oldest entries are evicted", arguments: [1, 2, 3, 5, 10])
  func costIsBounded(_ cost: Int) {
    let cache = MemoryCache.limited(cost: 10)
    for index in 0..<100 {
      #expect(cache.insert(entry(index, cost: cost), for: key("\(index)")))
      #expect(cache.totalCost <= 10)
      #expect(cache.totalCost == cache.count * cost)
    }
    #expect(cache.count == 10 / cost)
    #expect(cache.counters.evictions == [.size: 100 - 10 / cost])
  }

  @Test("the count limit holds, even for entries without a cost")
  func countIsBounded() {
    let cache = MemoryCache.limited(count: 3)
    for index in 0..<20 {
      cache.insert(entry("\(index)", cost: 0), for: key("\(index)"))
      #expect(cache.count <= 3)
    }
    #expect((0..<20).filter { cache.text("\($0)") != nil } == [17, 18, 19])
    #expect(cache.counters.evictions == [.count: 17])
  }

  @Test("an entry above the entry limit is refused, and its key then has no entry")
  func entryIsBounded() {
    // Given
    let cache = MemoryCache(limits: .init(cost: 100, entryCost: 10), clock: ManualClock())
    cache.insert(entry("bystander", cost: 10), for: key("bystander"))
    cache.insert(entry("small", cost: 10), for: key("a"))

    // When
    let isTaken = cache.insert(entry("large", cost: 11), for: key("a"))

    // Then: the old value must not be served in place of the new one.
    #expect(!isTaken)
    #expect(cache.entry(for: key("a")) == nil)
    #expect(cache.text("bystander") == "bystander")
    #expect(cache.totalCost == 10)
    #expect(cache.counters.refusedInsertions == 1)
  }

  @Test(
    "the default limit is a fifth of the memory of the machine, or of what the process may still use",
    arguments: [
      (8 << 30, nil, 512 << 20), (1 << 30, nil, (1 << 30) / 5), (nil, nil, (1 << 30) / 5), (8 << 30, 30_000_000, 6_000_000),
      (8 << 30, 3 << 30, 512 << 20), (2 << 30, 1 << 30, (1 << 30) / 5), (1 << 30, 0, (1 << 30) / 5),
    ] as [(Int?, Int?, Int)])
  func defaultCost(_ memory: Int?, _ available: Int?, _ expected: Int) {
    #expect(HostResources.share(atMost: 512 << 20, memory: memory, available: available) == expected)
  }

  @Test("a system that has reported available memory once has a limit, which is reached when it reports none")
  func available() {
    var hasLimit = false
    #expect(HostResources.available(reported: 0, hasLimit: &hasLimit) == nil)
    #expect(HostResources.available(reported: 30_000_000, hasLimit: &hasLimit) == 30_000_000)
    #expect(HostResources.available(reported: 0, hasLimit: &hasLimit) == 0)
  }

  @Test(
    "a memory warning removes the older half, and the critical level all entries",
    arguments: [(MemoryPressure.warning, ["5", "6", "7", "8", "9"]), (.critical, [])])
  func pressure(_ pressure: MemoryPressure, _ left: [String]) {
    let ttl = TTLPolicy(clock: ManualClock(), usual: .never, slidesOnRead: false)
    let storage = ShardedStorage(LeastRecentlyUsed(), MemoryCache.Limits(cost: 100), ttl, shards: 1)
    for index in 0..<10 { #expect(storage.insert(entry(cost: 10), for: key("\(index)"))) }
    storage.respond(to: pressure)
    #expect(Set(storage.keys()) == Set(left.map(key)))
  }

  @Test("by default, a single entry may use a quarter of the cost limit")
  func defaultShare() {
    let cache = MemoryCache(limits: .init(cost: 100), clock: ManualClock())
    #expect(cache.insert(entry(cost: 25), for: key("quarter")))
    #expect(!cache.insert(entry(cost: 26), for: key("more")))
  }

  @Test("an entry larger than the whole cache is refused without evicting others")
  func largerThanAll() {
    let cache = MemoryCache(limits: .init(cost: 10, entryCost: 1_000), clock: ManualClock())
    cache.insert(entry("kept", cost: 10), for: key("a"))

    #expect(!cache.insert(entry(cost: 11), for: key("b")))
    #expect(!cache.insert(entry(cost: .max), for: key("b")))
    #expect(cache.text("a") == "kept")
    #expect(cache.counters.evictions.isEmpty)
  }

  @Test("huge costs cause no overflow")
  func hugeCosts() {
    let cache = MemoryCache(limits: .init(cost: .max, entryCost: .max), clock: ManualClock())
    for name in ["a", "b", "c"] { #expect(cache.insert(entry(name, cost: .max - 1), for: key(name))) }
    #expect(cache.count == 1)
    #expect(cache.totalCost == .max - 1)
    #expect(cache.text("c") == "c")
  }

  @Test(
    "a store with a negative limit is invalid and stores nothing",
    arguments: [
      MemoryCache.Limits(cost: -1, count: -1, entryCost: -1), .init(cost: .min, count: 10), .init(cost: 10, count: .min),
      .init(cost: 10, count: 10, entryCost: .min),
    ])
  func negativeLimits(_ limits: MemoryCache.Limits) {
    let cache = MemoryCache(limits: limits, clock: ManualClock())
    #expect(cache.validityError?.code == .invalidConfiguration)
    #expect(!cache.insert(entry(cost: 1), for: key("a")))
    #expect(!cache.insert(entry(cost: 0), for: key("a")))
    #expect(cache.count == 0)
    #expect(cache.totalCost == 0)
  }

  @Test("negative numbers do not end the process", arguments: Policy.allCases, [0, -1, .min])
  func negativeNumbers(_ policy: Policy, _ number: Int) {
    let limits = MemoryCache.Limits(cost: number, count: number)
    let cache = policy.cache(limits)
    cache.insert(entry(cost: 1), for: key("a"))
    cache.trim(to: number)
    #expect(cache.count == 0)
  }

  @Test("negative limits that are set later are invalid too")
  func negativeLimitsSetLater() {
    var limits = MemoryCache.Limits(cost: 10, count: 10)
    limits.cost = .min
    limits.count = -3
    limits.entryCost = -1
    let cache = MemoryCache(limits: limits, clock: ManualClock())
    #expect(cache.validityError?.reason == "the setting 'cost' must be at least 0, not \(Int.min)")
    #expect(!cache.insert(entry(cost: 1), for: key("a")))
    #expect(!cache.insert(entry(cost: 0), for: key("a")))
    #expect(cache.count == 0)
  }

  @Test("limits of zero are valid, and nothing is stored")
  func zero() {
    let cache = MemoryCache(limits: .init(cost: 0, count: 0, entryCost: 0), clock: ManualClock())
    #expect(cache.validityError == nil)
    #expect(!cache.insert(entry(cost: 0), for: key("a")))
    #expect(MemoryCache(clock: ManualClock(), shards: 0).validityError?.reason.contains("'shards'") == true)
  }

  @Test("a negative cost of an entry counts as zero")
  func negativeCost() {
    let cache = MemoryCache.limited(cost: 10)
    cache.insert(entry(cost: 8), for: key("a"))
    cache.insert(entry(cost: -100), for: key("b"))
    #expect(cache.totalCost == 8)
    #expect(!cache.insert(entry(cost: 100), for: key("c")))
  }

  @Test("the default cost limit fits the machine")
  func defaultCost() {
    #expect(MemoryCache.Limits.defaultCost > 0)
    #expect(MemoryCache.Limits.defaultCost <= 512 << 20)
    #expect(MemoryCache.Limits().cost == MemoryCache.Limits.defaultCost)
  }

  @Test(
    "a trim evicts entries in the order of the policy", arguments: [(9, 9), (8, 6), (3, 3), (2, 0), (0, 0), (-5, 0)])
  func trims(_ target: Int, _ left: Int) {
    // Given: three entries of cost 3. The oldest one was used last.
    let cache = MemoryCache.limited(cost: 9)
    for name in ["a", "b", "c"] { cache.insert(entry(name, cost: 3), for: key(name)) }
    _ = cache.entry(for: key("a"))

    // When
    cache.trim(to: target)

    // Then
    #expect(cache.totalCost == left)
    #expect(cache.counters.evictions == (left == 9 ? [:] : [.trimmed: (9 - left) / 3]))
    #expect(["b", "c", "a"].filter { cache.text($0) != nil } == ["b", "c", "a"].suffix(left / 3))
  }
}

extension MemoryCache {
  fileprivate var validityError: CacheError? { if case .failure(let error) = validity { error } else { nil } }
}
