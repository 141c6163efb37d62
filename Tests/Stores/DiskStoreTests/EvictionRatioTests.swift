import CacheCore
import CacheTesting
import Foundation
import Testing

@testable import DiskStore

/// The store's own bookkeeping without files: storing, use, choice and eviction, in sweeps down to 90 %.
@Suite("Disk store: hit ratios")
struct EvictionRatioTests {
  private static let objects = 3_000
  private static let hashKey = SipHash.Key(first: 1, second: 2)
  /// The limits of the article's table in KiB. The objects have 3,776 KiB.
  private static let limits: [Int64] = [60, 300, 900]

  private static func trace(_ pattern: Trace.Pattern) -> Trace {
    Trace(pattern, requests: 40_000, objects: objects, seed: 1)
  }

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

  @Test(
    "the default's hit ratio is at least that of LRU when the folder is reopened now and then",
    arguments: Trace.Pattern.allCases, limits.prefix(2)
  )
  func neverBelowLRU(_ pattern: Trace.Pattern, _ kibibytes: Int64) {
    let trace = Self.trace(pattern)
    let own = Self.replay(trace, DiskCache.Configuration().eviction, limit: kibibytes << 10, reopens: true)
    let lru = Self.replay(trace, LeastRecentlyUsed(), limit: kibibytes << 10, reopens: true)
    #expect(own.objectRatio >= lru.objectRatio)
  }

  @Test(
    "the table of the article states the hit ratios of the replay, and the default is at least as good as LRU up to 300 KiB",
    arguments: zip(
      Trace.Pattern.allCases, ["Zipf distribution", "with scans", "with loops", "with shifting popularity"]))
  func table(_ pattern: Trace.Pattern, _ name: String) throws {
    // Given
    let root = URL(filePath: #filePath).appending(path: "../../../..").standardized
    let article = try String(
      contentsOf: root.appending(path: "Modules/Stores/DiskStore/DiskStore.docc/DiskStore.md"), encoding: .utf8)
    let table = article.split(separator: "\n").drop { $0 != "| requests | limit, KiB | S3-FIFO | LRU | LFU |" }
      .prefix { $0.hasPrefix("|") }
    let policies: [any EvictionPolicy] = [DiskCache.Configuration().eviction, LeastRecentlyUsed(), LeastFrequentlyUsed()]

    // When
    let trace = Self.trace(pattern)
    let ratios = policies.map { policy in
      Self.limits.map { Self.replay(trace, policy, limit: $0 << 10).objectRatio }
    }

    // Then
    let figures = ratios.map { $0.map { String(format: "%.1f", $0 * 100) } }
    let cells = [name] + ([Self.limits.map { "\($0)" }] + figures).map { $0.joined(separator: "; ") }
    #expect(table.count == 2 + Trace.Pattern.allCases.count)
    #expect(table.filter { $0.hasPrefix("| \(name) |") } == ["| \(cells.joined(separator: " | ")) |"])
    #expect(zip(ratios[0], ratios[1]).prefix(2).allSatisfy { $0 >= $1 })
  }
}
