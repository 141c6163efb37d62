import CacheCore
import CacheTesting
import MemoryStore
import Testing

@Suite("The contract of memory stores")
struct MemoryContractTests {
  @Test("a memory cache satisfies the contract", arguments: MemoryContract.cases)
  func contract(_ statement: MemoryContract.Case) throws { try statement.run(on: MemoryCache()) }

  @Test("a small memory cache satisfies the contract", arguments: MemoryContract.cases, Policy.allCases)
  func small(_ statement: MemoryContract.Case, _ policy: Policy) throws {
    try statement.run(on: policy.cache(.init(cost: 300, count: 10), clock: SystemClock()))
  }

  @Test("listing keys counts neither as a hit nor as a miss, and does not change the order")
  func listing() {
    let cache = MemoryCache(limits: .init(cost: 200, count: 2))
    let (a, b, c) = (CacheKey(resource: "a"), CacheKey(resource: "b"), CacheKey(resource: "c"))
    for key in [a, b] { cache.insert(MemoryEntry("x", cost: 10, revision: .random()), for: key) }

    #expect(Set(cache.keys()) == [a, b])
    #expect(cache.counters.hits == 0 && cache.counters.misses == 0)
    cache.insert(MemoryEntry("x", cost: 10, revision: .random()), for: c)

    #expect(Set(cache.keys()) == [b, c])
  }
}
