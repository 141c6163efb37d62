public import CacheCore

/// A bounded store in memory.
///
/// Synchronous and thread-safe: a hit is one critical section, allocates nothing and calls nobody. The limits hold at every
/// instant. A value that a caller holds stays valid after its eviction.
///
/// ```swift
/// let cache = MemoryCache(limits: .init(cost: 64 << 20, count: 10_000))
/// cache.insert(MemoryEntry(thumbnail, cost: thumbnail.count, revision: .random()), for: CacheKey(resource: "avatar/7"))
/// let again = cache.entry(for: CacheKey(resource: "avatar/7"))?.value(as: Data.self)
/// ```
public final class MemoryCache: MemoryStoring {
  /// The bounds.
  public let limits: Limits
  /// The time to live of entries that state none.
  public let expiration: Expiration
  /// The name of nothing else: two memory stores never hold the same entries.
  public let id = ComponentID.unique(MemoryCache.self)

  // The policy's type ends here: a hit pays for one dynamic dispatch, not for a generic parameter in everybody's signatures.
  private let storage: any EntryStorage
  private let pressure: PressureSource?

  /// An empty store.
  ///
  /// - Parameters:
  ///   - limits: the bounds.
  ///   - expiration: the time to live of entries that state none, counted from their insertion.
  ///   - slidesOnRead: whether a read starts an entry's time to live anew. Off: a sliding time to live keeps a much shown picture
  ///     stale for ever.
  ///   - eviction: who leaves first; each shard goes by a copy of it.
  ///   - clock: time, for the times to live.
  ///   - shards: how many parts with a lock of their own, rounded down to a power of two, from 1 to 64; nil: as many as have room
  ///     for 1,024 entries each (by the count, and by the cost at 16 KiB an entry), at most four for each processor. One shard
  ///     evicts in exactly the policy's order, many each in its own; the bounds hold for all of them together, at every instant.
  ///   - reactsToMemoryPressure: on Apple platforms, trims to half on a warning or in the background and empties when pressure is
  ///     critical.
  public init(
    limits: Limits = Limits(), expiration: Expiration = .never, slidesOnRead: Bool = false,
    eviction: some EvictionPolicy = S3FIFO(), clock: any CacheClock = SystemClock(), shards: Int? = nil,
    reactsToMemoryPressure: Bool = true
  ) {
    self.limits = limits
    self.expiration = expiration
    let storage = ShardedStorage(
      eviction, limits, TTLPolicy(clock: clock, usual: expiration, slidesOnRead: slidesOnRead),
      shards: shards.map(ShardCount.powerOfTwo) ?? ShardCount.suiting(limits))
    self.storage = storage
    pressure = reactsToMemoryPressure ? PressureSource(storage) : nil
  }

  public func entry(for key: CacheKey) -> MemoryEntry? { storage.entry(for: key) }

  @discardableResult
  public func insert(_ entry: MemoryEntry, for key: CacheKey) -> Bool { storage.insert(entry, for: key) }

  @discardableResult
  public func update(_ key: CacheKey, _ change: (MemoryEntry?) -> MemoryUpdate) -> Bool { storage.update(key, change) }

  public func remove(_ key: CacheKey, ifRevision: Revision? = nil) { storage.remove(key, ifRevision: ifRevision) }

  public func removeAll() { storage.removeAll() }

  /// Neither hits nor misses, and no order changes by it. O(n), one critical section for each shard.
  public func keys() -> [CacheKey] { storage.keys() }

  /// Evicts, in the policy's order, until the entries weigh `cost` bytes or less. Every shard gives its part.
  public func trim(to cost: Int) { storage.trim(to: cost) }

  /// Removes what is expired. Not needed for correctness: an expired entry is a miss at once.
  public func removeExpired() { storage.removeExpired() }

  /// Bytes, all entries together; what is moving in or out at this moment counts.
  public var totalCost: Int { storage.cost }

  /// Entries; what is moving in or out at this moment counts.
  public var count: Int { storage.count }

  public func usage() -> StoreUsage? {
    StoreUsage(entries: count, bytes: Int64(totalCost), limit: limits.cost == .max ? nil : Int64(limits.cost))
  }

  /// What the store has done so far.
  public var counters: MemoryCacheCounters { storage.counters }

  /// How many parts it has, each with a lock and an order of its own.
  public var shardCount: Int { storage.shardCount }
}
