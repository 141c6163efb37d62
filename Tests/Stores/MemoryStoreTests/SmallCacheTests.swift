import CacheCore
import MemoryStore
import Testing

@Suite("A memory cache with room for a few entries")
struct SmallCacheTests {
  private static func name(_ number: Int) -> String { "\(number)" }

  private static func caches(_ policy: Policy, _ room: Int) -> [MemoryCache] {
    [policy.cache(.init(cost: .max, count: room)), policy.cache(.init(cost: 10 * room + 5, entryCost: .max))]
  }

  @Test("an entry that was just inserted is there, and 100 entries leave the last ones", arguments: Policy.allCases, 1...16)
  func lastOnes(_ policy: Policy, _ room: Int) {
    for cache in Self.caches(policy, room) {
      for number in 0..<100 {
        #expect(cache.insert(entry(Self.name(number), cost: 10), for: key(Self.name(number))))
        #expect(cache.text(Self.name(number)) == Self.name(number))
      }
      #expect(Set(cache.keys()) == Set((100 - room..<100).map { key(Self.name($0)) }))
    }
  }

  @Test("S3-FIFO retains entries in use during a scan, and the last entries of the scan", arguments: [8, 12, 20, 40])
  func scan(_ room: Int) {
    for cache in Self.caches(.s3FIFO, room) {
      let used = (0..<room / 3).map(Self.name)
      for name in used {
        cache.insert(entry(name, cost: 10), for: key(name))
        for _ in 0..<2 { _ = cache.entry(for: key(name)) }
      }
      for number in 100..<200 { cache.insert(entry(cost: 10), for: key(Self.name(number))) }
      let expected = used + (0..<room - used.count).map { Self.name(199 - $0) }
      #expect(Set(cache.keys()) == Set(expected.map(key)))
    }
  }

  @Test("a trim to half leaves the last ones", arguments: [Policy.s3FIFO, .leastRecentlyUsed])
  func trim(_ policy: Policy) {
    for cache in Self.caches(policy, 8) {
      for number in 0..<20 { cache.insert(entry(cost: 10), for: key(Self.name(number))) }
      cache.trim(to: cache.totalCost / 2)
      #expect(Set(cache.keys()) == Set((16..<20).map { key(Self.name($0)) }))
    }
  }
}
