import CacheCore
import CacheTesting
import Testing

@testable import DiskStore

/// The store's own bookkeeping without files: storing, use, choice and eviction, in sweeps down to 90 %.
@Suite("Disk store: hit ratios")
struct EvictionRatioTests {
  private static let objects = 3_000
  private static let hashKey = SipHash.Key(first: 1, second: 2)
  private static let shares = [0.02, 0.1]

  private static func replay(_ trace: Trace, _ eviction: any EvictionPolicy, limit: Int64, reopens: Bool = false) -> Trace.Outcome
  {
    var index = EntryIndex(eviction, limit: limit)
    var outcome = Trace.Outcome()
    let mark = DiskCache.Configuration(sizeLimit: limit).sizeMark
    _ = index.endList([:])
    for (number, request) in trace.requests.enumerated() {
      let name = EntryName(CacheKey(resource: "\(request.object)"), hashKey: hashKey)
      let now = Timestamp(nanoseconds: Int64(number))
      let isHit = index.use(name) != nil
      outcome.add(request, isHit: isHit)
      if isHit {
        index.used(name, size: Int64(request.size), at: now)
      } else if index.stored(name, size: Int64(request.size), at: now) > limit {
        index.sweep {
          let size = index.known.size
          let victims = index.choose(size - mark, most: .max, sparingRecentUnless: size - limit)
          for victim in victims { index.evicted(victim, .removed) }
        }
      }
      if reopens, number.isMultiple(of: trace.requests.count / 5) { index = reopened(index, eviction, limit) }
    }
    return outcome
  }

  /// Returns the index of a new process, which knows what an index file states.
  private static func reopened(_ index: EntryIndex, _ eviction: any EvictionPolicy, _ limit: Int64) -> EntryIndex {
    let next = EntryIndex(eviction, limit: limit)
    var found: [EntryName: EntryIndex.Use] = [:]
    for (name, use) in index.byLastUse() { found[name] = EntryIndex.Use(size: use.size, last: use.last, uses: use.uses) }
    next.beginList()
    _ = next.endList(found)
    return next
  }

  private static func limit(_ share: Double) -> Int64 {
    // The mean size of the trace's objects is about 1 KiB.
    Int64(Double(objects) * share * 1_024)
  }

  @Test(
    "the default's hit ratio is at least that of LRU, also when the folder is reopened now and then",
    arguments: Trace.Pattern.allCases, shares
  )
  func neverBelowLRU(_ pattern: Trace.Pattern, _ share: Double) {
    let trace = Trace(pattern, requests: 40_000, objects: Self.objects, seed: 1)
    let limit = Self.limit(share)
    let own = Self.replay(trace, DiskCache.Configuration().eviction, limit: limit)
    let lru = Self.replay(trace, LeastRecentlyUsed(), limit: limit)
    let again = Self.replay(trace, DiskCache.Configuration().eviction, limit: limit, reopens: true)
    let lruAgain = Self.replay(trace, LeastRecentlyUsed(), limit: limit, reopens: true)
    #expect(own.objectRatio >= lru.objectRatio)
    #expect(again.objectRatio >= lruAgain.objectRatio)
  }
}
