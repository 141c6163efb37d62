import CacheCore
import MemoryStore

/// A simple model of a memory cache: an array, least recently used entry first.
struct ReferenceCache {
  struct Resident {
    var name: Int
    var cost: Int
    var stamp: Int
    var deadline: Timestamp
  }

  let limits: MemoryCache.Limits
  private(set) var residents: [Resident] = []
  private(set) var hits = 0
  private(set) var misses = 0
  private(set) var insertions = 0
  private(set) var refusedInsertions = 0
  private(set) var evictions: [EvictionReason: Int] = [:]

  init(limits: MemoryCache.Limits) { self.limits = limits }

  /// Returns whether the counters of the cache equal those of the model.
  func agrees(with counters: MemoryCacheCounters) -> Bool {
    counters.hits == hits && counters.misses == misses && counters.insertions == insertions
      && counters.refusedInsertions == refusedInsertions
      && counters.evictions == evictions
  }

  var totalCost: Int { residents.reduce(0) { $0 + $1.cost } }

  mutating func get(_ name: Int, now: Timestamp) -> Int? {
    guard let index = residents.firstIndex(where: { $0.name == name }) else {
      misses += 1
      return nil
    }
    guard now < residents[index].deadline else {
      drop(index, .expired)
      misses += 1
      return nil
    }
    hits += 1
    let resident = residents.remove(at: index)
    residents.append(resident)
    return resident.stamp
  }

  mutating func insert(_ resident: Resident) -> Bool {
    if let index = residents.firstIndex(where: { $0.name == resident.name }) { drop(index, .replaced) }
    guard resident.cost <= min(limits.cost, limits.entryCost), limits.count > 0 else {
      refusedInsertions += 1
      return false
    }
    while totalCost + resident.cost > limits.cost { drop(0, .size) }
    while residents.count >= limits.count { drop(0, .count) }
    residents.append(resident)
    insertions += 1
    return true
  }

  mutating func remove(_ name: Int) {
    if let index = residents.firstIndex(where: { $0.name == name }) { drop(index, .removed) }
  }

  mutating func removeAll() { while !residents.isEmpty { drop(0, .removed) } }

  mutating func trim(to cost: Int) { while totalCost > cost, !residents.isEmpty { drop(0, .trimmed) } }

  mutating func removeExpired(at now: Timestamp) {
    while let index = residents.firstIndex(where: { $0.deadline <= now }) { drop(index, .expired) }
  }

  private mutating func drop(_ index: Int, _ reason: EvictionReason) {
    residents.remove(at: index)
    evictions[reason, default: 0] += 1
  }
}
