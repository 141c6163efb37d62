import CacheCore
import CacheTesting
import MemoryStore

/// The hash of the keys, fixed because it determines the shard of a key.
private let keyHash = {
  var generator = SplitMix(state: 1)
  return KeyHash(using: &generator)
}()

/// Returns a key with a fixed hash.
func key(_ name: String) -> CacheKey { CacheKey(resource: "https://example.com/\(name)", hashedBy: keyHash) }

func entry(
  _ value: any Sendable = "value", cost: Int = 1, revision: Revision = .random(), expiration: Expiration? = nil
) -> MemoryEntry {
  MemoryEntry(value, cost: cost, revision: revision, expiration: expiration)
}

extension MemoryCache {
  /// Returns a cache in which a single entry may use the whole cost limit. Its order is LRU, which is easy to predict.
  static func limited(
    cost: Int = 1_000, count: Int = .max, expiration: Expiration = .never,
    eviction: some EvictionPolicy = LeastRecentlyUsed(), clock: any CacheClock = ManualClock(), shards: Int? = nil
  ) -> MemoryCache {
    MemoryCache(
      limits: .init(cost: cost, count: count, entryCost: cost), expiration: expiration, eviction: eviction, clock: clock,
      shards: shards)
  }

  func text(_ name: String) -> String? { entry(for: key(name))?.value(as: String.self) }
}

/// A policy that evicts the oldest entry, however often it is used.
struct FirstInFirstOut: EvictionPolicy {
  private var queue: [Int] = []

  mutating func insert(_ slot: Int, fingerprint: Int, cost: Int) { queue.append(slot) }
  mutating func access(_ slot: Int) {}
  mutating func remove(_ slot: Int) { queue.removeAll { $0 == slot } }
  mutating func evict(toFit cost: Int) -> Int? { queue.isEmpty ? nil : queue.removeFirst() }
}
