import CacheCore
import CacheTesting
import MemoryStore

/// Random operations on a memory cache and a dictionary. The policy decides which entry is evicted. A found entry must be the one
/// stored last, and no limit may be exceeded.
struct MemoryModel {
  private let cache: MemoryCache
  private let clock = ManualClock()
  private let limits = MemoryCache.Limits(cost: 40_000, count: 90, entryCost: 4_000)
  private var generator: SplitMix
  private var values: [Int: (entry: MemoryEntry, deadline: Timestamp)] = [:]
  private var hits = 0
  private var misses = 0

  init(seed: UInt64, eviction: any EvictionPolicy) {
    generator = SplitMix(state: seed)
    cache = MemoryCache(limits: limits, eviction: eviction, clock: clock)
  }

  mutating func run(_ operations: Int, _ name: String) throws -> String {
    for step in 0..<operations {
      do {
        try self.step()
        try require(
          cache.totalCost <= limits.cost && cache.count <= limits.count, "\(cache.totalCost), \(cache.count): exceeds the limits")
        if step % 10_000 == 9_999 { try checkpoint() }
      } catch {
        throw FailedCheck("MemoryCache, \(name), operation \(step): \(error)")
      }
    }
    try checkpoint()
    let counters = cache.counters
    try require(
      counters.hits == hits && counters.misses == misses, "\(counters), but \(hits) hits and \(misses) misses were seen")
    return "MemoryCache, \(name): \(grouped(operations)) operations, \(grouped(hits)) hits, \(grouped(misses)) misses"
  }

  private mutating func step() throws {
    let number = Int.random(in: 0..<240, using: &generator)
    let key = Keys.key(number)
    switch Int.random(in: 0..<10_000, using: &generator) {
    case 0:
      cache.removeAll()
      values = [:]
    case 1: cache.trim(to: Int.random(in: 0...40_000, using: &generator))
    case 2: cache.removeExpired()
    case 3..<500: clock.advance(by: .milliseconds(Int.random(in: 0...500, using: &generator)))
    case 500..<1_000:
      cache.remove(key, ifRevision: nil)
      values[number] = nil
    case 1_000..<1_300: cache.remove(key, ifRevision: .random())
    case 1_300..<4_500:
      let cost = Int.random(in: 0...4_100, using: &generator) >> Int.random(in: 0...6, using: &generator)
      let lifetime = Bool.random(using: &generator) ? nil : Int.random(in: 0...20, using: &generator)
      let expiration: Expiration? = lifetime.map { .after(.seconds($0)) }
      let entry = MemoryEntry(number, cost: cost, revision: Revision(high: 1, low: UInt64(number)), expiration: expiration)
      let isStored = cache.insert(entry, for: key)
      try require(isStored == (cost <= limits.entryCost), "an entry with the cost \(cost): stored \(isStored)")
      values[number] = isStored ? (entry, (expiration ?? .never).deadline(from: clock.now)) : nil
    default: try look(number)
    }
  }

  private mutating func look(_ number: Int) throws {
    let found = cache.entry(for: Keys.key(number))
    if found == nil { misses += 1 } else { hits += 1 }
    guard let expected = values[number], clock.now < expected.deadline else {
      values[number] = nil
      return try require(found == nil, "\(Keys.key(number)) was found, but is removed or expired")
    }
    // The entry may have been evicted.
    guard let found else { return values[number] = nil }
    try require(found === expected.entry, "\(Keys.key(number)) is not the entry that was stored last")
  }

  /// Compares the cache's list with the entries that were stored.
  private mutating func checkpoint() throws {
    cache.removeExpired()
    let keys = cache.keys()
    try require(keys.count == cache.count && Set(keys).count == keys.count, "\(keys.count) keys for \(cache.count) entries")
    var cost = 0
    for key in keys {
      guard let number = (0..<4).lazy.compactMap({ offset in Self.number(key, offset) }).first, let value = values[number],
        clock.now < value.deadline
      else { throw FailedCheck("\(key) is listed, but was never stored") }
      cost += value.entry.cost
    }
    try require(cost == cache.totalCost, "the entries cost \(cost), but the total is \(cache.totalCost)")
  }

  private static func number(_ key: CacheKey, _ offset: Int) -> Int? {
    guard let resource = key.resource.split(separator: "/").last.flatMap({ Int($0) }) else { return nil }
    return Keys.key(resource * 4 + offset) == key ? resource * 4 + offset : nil
  }
}
