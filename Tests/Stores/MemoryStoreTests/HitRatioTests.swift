import CacheCore
import CacheTesting
import MemoryStore
import Testing

@Suite("The hit ratio of a memory cache")
struct HitRatioTests {
  private static let objects = 5_000
  private static let seeds: [UInt64] = [1, 2]

  private static func cache(_ eviction: some EvictionPolicy, capacity: Int, countsBytes: Bool) -> MemoryCache {
    MemoryCache(
      limits: .init(cost: countsBytes ? capacity : .max, count: countsBytes ? .max : capacity, entryCost: .max),
      eviction: eviction, clock: ManualClock(), shards: 1)
  }

  @Test(
    "the hit ratio of S3-FIFO is within 1 % of the reference implementation's", arguments: Trace.Pattern.allCases,
    [(100, false), (500, false), (1_500, false), (500 << 10, true), (3 << 20, true)])
  func reference(_ pattern: Trace.Pattern, _ bound: (capacity: Int, countsBytes: Bool)) {
    for seed in Self.seeds {
      // Given
      let trace = Trace(pattern, requests: 20_000, objects: Self.objects, seed: seed)
      var model = ReferenceS3FIFO(capacity: bound.capacity, countsBytes: bound.countsBytes)
      var expected = Trace.Outcome()

      // When
      for request in trace.requests { expected.add(request, isHit: model.request(request)) }
      let found = trace.replay(into: Self.cache(S3FIFO(), capacity: bound.capacity, countsBytes: bound.countsBytes))

      // Then
      #expect(expected.hits > 1_000)
      #expect(abs(found.objectRatio - expected.objectRatio) <= expected.objectRatio / 100)
      #expect(abs(found.byteRatio - expected.byteRatio) <= expected.byteRatio / 100)
    }
  }

  @Test(
    "the hit ratio of the default policy is never below that of LRU", arguments: Trace.Pattern.allCases,
    [(250, false), (500, false), (1_000, false), (512 << 10, true), (1 << 20, true)])
  func neverBelowLRU(_ pattern: Trace.Pattern, _ bound: (capacity: Int, countsBytes: Bool)) {
    for seed in Self.seeds {
      let trace = Trace(pattern, requests: 30_000, objects: Self.objects, seed: seed)
      let limits = MemoryCache.Limits(
        cost: bound.countsBytes ? bound.capacity : .max, count: bound.countsBytes ? .max : bound.capacity, entryCost: .max)
      let own = trace.replay(into: MemoryCache(limits: limits))
      let other = trace.replay(into: Self.cache(LeastRecentlyUsed(), capacity: bound.capacity, countsBytes: bound.countsBytes))
      #expect(own.objectRatio >= other.objectRatio)
    }
  }

  @Test("the hit ratio hardly depends on the number of shards", arguments: Trace.Pattern.allCases)
  func shards(_ pattern: Trace.Pattern) {
    let trace = Trace(pattern, requests: 30_000, objects: Self.objects, seed: 3)
    func ratio(_ shards: Int) -> Double {
      trace.replay(into: MemoryCache(limits: .init(cost: .max, count: 1_000, entryCost: .max), shards: shards)).objectRatio
    }
    #expect(abs(ratio(8) - ratio(1)) < 0.02)
  }
}
