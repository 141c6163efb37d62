public import CacheCore

/// A bounded store in memory.
///
/// Synchronous and thread-safe: a hit is one critical section, allocates nothing and calls nobody. The limits hold at every instant. A value that a
/// caller holds stays valid after its eviction.
///
/// ```swift
/// let cache = MemoryCache(limits: .init(cost: 64 << 20, count: 10_000))
/// cache.insert(MemoryEntry(thumbnail, cost: thumbnail.count, revision: .mint()), for: CacheKey(resource: "avatar/7"))
/// let again = cache.entry(for: CacheKey(resource: "avatar/7"))?.value(as: Data.self)
/// ```
public final class MemoryCache: MemoryStoring {
  /// Bounds of a ``MemoryCache``; negative numbers count as zero.
  public struct Limits: Hashable, Sendable {
    /// Bytes for all entries together.
    public var cost: Int
    /// Entries.
    public var count: Int
    /// Bytes for a single entry; a larger one is refused.
    public var entryCost: Int

    /// Bounds; without `entryCost` a single entry may take a quarter of `cost`.
    public init(cost: Int = Limits.defaultCost, count: Int = .max, entryCost: Int? = nil) {
      self.cost = max(0, cost)
      self.count = max(0, count)
      self.entryCost = max(0, entryCost ?? self.cost / 4)
    }

    /// A fifth of the machine's memory, at most 512 MiB.
    public static let defaultCost = min(512 << 20, (PhysicalMemory.bytes ?? 1 << 30) / 5)
  }

  /// The bounds.
  public let limits: Limits
  /// The time to live of entries that state none.
  public let expiration: Expiration
  /// The name of nothing else: two memory stores never hold the same entries.
  public let id = ComponentID.unique(MemoryCache.self)

  private let clock: any CacheClock
  private let sliding: Expiration?
  // The policy's type ends here: a hit pays for one dynamic dispatch, not for a generic parameter in everybody's signatures.
  private let shard: any Shard
  private let pressure: PressureSource?

  /// An empty store.
  ///
  /// - Parameters:
  ///   - limits: the bounds.
  ///   - expiration: the time to live of entries that state none, counted from their insertion.
  ///   - slidesOnRead: whether a read starts an entry's time to live anew. Off: a sliding time to live keeps a much shown picture stale for ever.
  ///   - eviction: who leaves first.
  ///   - clock: time, for the times to live.
  ///   - reactsToMemoryPressure: on Apple platforms, trims to half on a warning or in the background and empties when pressure is critical.
  public init(
    limits: Limits = Limits(), expiration: Expiration = .never, slidesOnRead: Bool = false,
    eviction: some EvictionPolicy = LeastRecentlyUsed(), clock: any CacheClock = SystemClock(),
    reactsToMemoryPressure: Bool = true
  ) {
    self.limits = limits
    self.expiration = expiration
    self.clock = clock
    sliding = slidesOnRead ? expiration : nil
    let shard = LockedShard(eviction, limits)
    self.shard = shard
    pressure = reactsToMemoryPressure ? PressureSource(shard) : nil
  }

  public func entry(for key: CacheKey) -> MemoryEntry? { shard.entry(for: key, clock: clock, sliding: sliding) }

  @discardableResult
  public func insert(_ entry: MemoryEntry, for key: CacheKey) -> Bool {
    shard.insert(entry, for: key, deadline: Self.deadline(entry.expiration ?? expiration, clock), limits: limits)
  }

  private static func deadline(_ expiration: Expiration, _ clock: any CacheClock) -> Timestamp {
    switch expiration {
    case .never: .distantFuture
    case .after, .at: expiration.deadline(from: clock.now)
    }
  }

  @discardableResult
  public func update(_ key: CacheKey, _ change: (MemoryEntry?) -> MemoryUpdate) -> Bool {
    shard.update(key, limits: limits, clock: clock, change) { [expiration] entry, clock in
      Self.deadline(entry.expiration ?? expiration, clock)
    }
  }

  public func remove(_ key: CacheKey, ifRevision: Revision? = nil) { shard.remove(key, ifRevision: ifRevision) }

  public func removeAll() { shard.removeAll() }

  /// Neither hits nor misses, and no order changes by it. O(n), in one critical section.
  public func keys() -> [CacheKey] { shard.keys(at: clock.now) }

  /// Evicts, in the policy's order, until the entries weigh `cost` bytes or less.
  public func trim(to cost: Int) { shard.trim(to: cost) }

  /// Removes what is expired. Not needed for correctness: an expired entry is a miss at once.
  public func removeExpired() { shard.removeExpired(at: clock.now) }

  /// Bytes, all entries together.
  public var totalCost: Int { shard.status().cost }

  /// Entries.
  public var count: Int { shard.status().count }

  /// What the store has done so far.
  public var counters: MemoryCacheCounters { shard.status().counters }
}

/// What is left of a shard when its policy's type is forgotten.
protocol Shard: AnyObject, Sendable {
  func entry(for key: CacheKey, clock: any CacheClock, sliding: Expiration?) -> MemoryEntry?
  func insert(_ entry: MemoryEntry, for key: CacheKey, deadline: Timestamp, limits: MemoryCache.Limits) -> Bool
  func update(
    _ key: CacheKey, limits: MemoryCache.Limits, clock: any CacheClock, _ change: (MemoryEntry?) -> MemoryUpdate,
    deadline: (MemoryEntry, any CacheClock) -> Timestamp
  ) -> Bool
  func remove(_ key: CacheKey, ifRevision: Revision?)
  func removeAll()
  func trim(to cost: Int)
  func removeExpired(at now: Timestamp)
  func keys(at now: Timestamp) -> [CacheKey]
  func status() -> (cost: Int, count: Int, counters: MemoryCacheCounters)
}

private final class LockedShard<Policy: EvictionPolicy>: Shard {
  private let storage: Lock<MemoryStorage<Policy>>

  init(_ policy: Policy, _ limits: MemoryCache.Limits) {
    var policy = policy
    policy.bound(cost: limits.cost, count: limits.count)
    storage = Lock(MemoryStorage(policy: policy))
  }

  // Each call keeps what left in a local that outlives the critical section: a value's `deinit` is a user's code. The calls that every load makes are
  // compiled for the usual policy by itself: a class behind a protocol is not specialised otherwise, and looks up its types at each turn.

  #if compiler(>=6.3)
  @specialized(where Policy == LeastRecentlyUsed)
  #endif
  func entry(for key: CacheKey, clock: any CacheClock, sliding: Expiration?) -> MemoryEntry? {
    var left: [MemoryEntry] = []
    return storage.withLock { $0.entry(for: key, now: { clock.now }, sliding: sliding, left: &left) }
  }

  #if compiler(>=6.3)
  @specialized(where Policy == LeastRecentlyUsed)
  #endif
  func insert(_ entry: MemoryEntry, for key: CacheKey, deadline: Timestamp, limits: MemoryCache.Limits) -> Bool {
    var left: [MemoryEntry] = []
    return storage.withLock { $0.insert(entry, for: key, deadline: deadline, limits: limits, left: &left) }
  }

  #if compiler(>=6.3)
  @specialized(where Policy == LeastRecentlyUsed)
  #endif
  func update(
    _ key: CacheKey, limits: MemoryCache.Limits, clock: any CacheClock, _ change: (MemoryEntry?) -> MemoryUpdate,
    deadline: (MemoryEntry, any CacheClock) -> Timestamp
  ) -> Bool {
    var left: [MemoryEntry] = []
    return storage.withLock { storage in
      switch change(storage.resident(for: key, now: { clock.now })) {
      case .keep: return false
      case .remove:
        storage.remove(key, ifRevision: nil, left: &left)
        return true
      case .replace(let entry):
        return storage.insert(entry, for: key, deadline: deadline(entry, clock), limits: limits, left: &left)
      }
    }
  }

  func remove(_ key: CacheKey, ifRevision: Revision?) {
    var left: [MemoryEntry] = []
    storage.withLock { $0.remove(key, ifRevision: ifRevision, left: &left) }
  }

  func removeAll() {
    var left: [MemoryEntry] = []
    storage.withLock { $0.removeAll(left: &left) }
  }

  func trim(to cost: Int) {
    var left: [MemoryEntry] = []
    storage.withLock { $0.trim(to: cost, left: &left) }
  }

  func removeExpired(at now: Timestamp) {
    var left: [MemoryEntry] = []
    storage.withLock { $0.removeExpired(at: now, left: &left) }
  }

  func keys(at now: Timestamp) -> [CacheKey] { storage.withLock { $0.keys(at: now) } }

  func status() -> (cost: Int, count: Int, counters: MemoryCacheCounters) {
    storage.withLock { ($0.totalCost, $0.count, $0.counters) }
  }
}
