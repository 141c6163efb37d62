public import CacheCore

#if canImport(Darwin)
private import Dispatch
private import Foundation
#endif

/// A bounded memory store.
///
/// It is synchronous and thread-safe. A hit is one critical section, or two for an entry with a time to live. It allocates
/// nothing, and calls no user code but the clock and a custom eviction policy. The limits hold at every instant. An insertion
/// evicts other entries and never its own. A value that a caller references stays valid after its eviction.
///
/// ```swift
/// let cache = MemoryCache(limits: .init(cost: 64 << 20, count: 10_000))
/// cache.insert(MemoryEntry(bytes, cost: bytes.count, revision: .random()), for: CacheKey(resource: "avatar/7"))
/// let again = cache.entry(for: CacheKey(resource: "avatar/7"))?.value(as: Data.self)
/// ```
public final class MemoryCache: MemoryStoring, CheckedComponent {
  /// The limits of the store.
  public let limits: Limits
  /// The time to live of entries that state none.
  public let expiration: Expiration
  /// The identity, which is unique: two memory stores never share entries.
  public let id = ComponentID.unique(MemoryCache.self)

  // The type of the policy is erased, so that a hit costs one dynamic dispatch and signatures need no generic parameter.
  private let storage: any EntryStorage
  private let pressure: PressureSource?
  package let validity: Result<Void, CacheError>

  /// Creates an empty store.
  ///
  /// - Parameters:
  ///   - limits: The limits of the store.
  ///   - expiration: The time to live of entries that state none, counted from their insertion.
  ///   - slidesOnRead: Whether a read restarts an entry's time to live. With `true`, an image that is shown often stays stale
  ///     forever.
  ///   - eviction: The policy that decides which entry leaves first. Each shard has its own copy.
  ///   - clock: The clock for times to live.
  ///   - shards: The number of parts with separate locks, at least 1. It is rounded down to a power of two, at most 64. With
  ///     `nil`, each shard can have at least 1,024 entries (by the count limit, and by the cost limit at 16 KiB an entry), and
  ///     there are at most four shards for each processor. A single shard evicts in the exact order of the policy. With several
  ///     shards, each has its own order, but the limits apply to all of them together at every instant.
  ///   - reactsToMemoryPressure: Whether the store reacts to memory pressure on Apple platforms. It trims to half on a warning or
  ///     when the app enters the background, and removes all entries when the pressure is critical.
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
    validity = Result { () throws(CacheError) in
      try limits.check()
      try CacheError.require("shards", shards, in: 1...)
    }
    pressure = reactsToMemoryPressure ? PressureSource(storage) : nil
  }

  public func entry(for key: CacheKey) -> MemoryEntry? { storage.entry(for: key) }

  @discardableResult
  public func insert(_ entry: MemoryEntry, for key: CacheKey) -> Bool { storage.insert(entry, for: key) }

  @discardableResult
  public func update(_ key: CacheKey, _ change: (MemoryEntry?) -> MemoryUpdate) -> Bool { storage.update(key, change) }

  public func remove(_ key: CacheKey, ifRevision: Revision? = nil) { storage.remove(key, ifRevision: ifRevision) }

  public func removeAll() { storage.removeAll() }

  /// Returns the keys of all entries that have not expired. It counts neither as a hit nor as a miss, and does not change the
  /// order. O(*n*), one critical section for each shard.
  public func keys() -> [CacheKey] { storage.keys() }

  /// Evicts entries in the policy's order until their total cost is at most `cost` bytes. Every shard contributes its share. With
  /// zero or less, no entry with a cost remains.
  public func trim(to cost: Int) { storage.trim(to: cost) }

  /// Removes expired entries. This is not needed for correctness, because an expired entry is a miss at once.
  public func removeExpired() { storage.removeExpired() }

  /// The cost of all entries in bytes, including entries that are being inserted or removed.
  public var totalCost: Int { storage.cost }

  /// The number of entries, including those that are being inserted or removed.
  public var count: Int { storage.count }

  public func usage() -> StoreUsage? {
    StoreUsage(entries: count, bytes: Int64(totalCost), limit: limits.cost == .max ? nil : Int64(limits.cost))
  }

  /// The counters of the store.
  public var counters: MemoryCacheCounters { storage.counters }

  /// The number of shards, each with its own lock and order.
  public var shardCount: Int { storage.shardCount }
}

extension MemoryCache {
  /// The limits of a ``MemoryCache``, each at least zero. With zero, nothing is stored.
  ///
  /// A store with a negative limit stores nothing, and a manager with it fails each load with
  /// `CacheError.Code.invalidConfiguration`.
  public struct Limits: Hashable, Sendable {
    /// The maximum cost of all entries, in bytes.
    public var cost: Int
    /// The maximum number of entries.
    public var count: Int
    /// The maximum cost of a single entry, in bytes. A larger entry is refused.
    public var entryCost: Int
    /// Whether the cost of an entry includes the bytes of its key and 256 bytes for the store's own overhead. If not, the cost is
    /// ``/CacheCore/MemoryEntry/cost`` alone.
    public var includesOverhead: Bool

    /// Creates limits. By default, the maximum cost of a single entry is a quarter of `cost`.
    public init(cost: Int = Limits.defaultCost, count: Int = .max, entryCost: Int? = nil, includesOverhead: Bool = false) {
      self.cost = cost
      self.count = count
      self.entryCost = entryCost ?? cost / 4
      self.includesOverhead = includesOverhead
    }

    /// The default cost limit: a fifth of the machine's memory, at most 512 MiB. On iOS, tvOS, watchOS and visionOS, it is at
    /// most a fifth of the memory that the process may still use when it first reads this value.
    public static let defaultCost = HostResources.share(atMost: 512 << 20)

    func check() throws(CacheError) {
      try CacheError.require("cost", cost, in: 0...)
      try CacheError.require("count", count, in: 0...)
      try CacheError.require("entryCost", entryCost, in: 0...)
    }

    /// Returns the cost of an entry under these limits.
    func cost(of entry: MemoryEntry, _ key: CacheKey) -> Int {
      guard includesOverhead else { return entry.cost }
      let keeping = key.resource.utf8.count + key.variant.utf8.count + key.transform.utf8.count + 256
      let (sum, overflow) = entry.cost.addingReportingOverflow(keeping)
      return overflow ? .max : sum
    }
  }
}

/// Counters of a ``MemoryCache`` since its creation.
public struct MemoryCacheCounters: Hashable, Sendable {
  /// The number of lookups that found an entry.
  public var hits = 0
  /// The number of lookups that found no entry or an expired one.
  public var misses = 0
  /// The number of inserted entries.
  public var insertions = 0
  /// The number of entries that were refused because of a limit, or because other threads kept the space busy.
  public var refusedInsertions = 0
  /// The number of entries that left, by reason.
  public var evictions: [EvictionReason: Int] = [:]
}

#if canImport(Darwin)
/// An observer that trims a store when the system runs short of memory, or the app receives a memory warning or enters the
/// background. It references the store weakly.
final class PressureSource: Sendable {
  // Proof of `@unchecked Sendable`: the properties are set once in `init` and only read in `deinit`.
  private struct Registration: @unchecked Sendable {
    let source: any DispatchSourceMemoryPressure
    let tokens: [any NSObjectProtocol]
  }

  private let registration: Registration

  init(_ storage: any EntryStorage) {
    let source = DispatchSource.makeMemoryPressureSource(eventMask: [.warning, .critical], queue: .global(qos: .utility))
    source.setEventHandler { [weak storage, weak source] in
      guard let storage, let event = source?.data else { return }
      storage.respond(to: event.contains(.critical) ? .critical : .warning)
    }
    source.activate()
    // The names are text, because UIKit's constants would require UIKit and its main actor. The memory warning is about the limit
    // of the app, and the dispatch source about the memory of the device.
    let tokens = ["UIApplicationDidEnterBackgroundNotification", "UIApplicationDidReceiveMemoryWarningNotification"].map { name in
      NotificationCenter.default.addObserver(forName: Notification.Name(name), object: nil, queue: nil) { [weak storage] _ in
        storage?.respond(to: .warning)
      }
    }
    registration = Registration(source: source, tokens: tokens)
  }

  deinit {
    registration.source.cancel()
    for token in registration.tokens { NotificationCenter.default.removeObserver(token) }
  }
}
#else
/// A placeholder for other systems, which send no such signal. A program can call ``MemoryCache/trim(to:)`` itself.
final class PressureSource: Sendable {
  init(_ storage: any EntryStorage) {}
}
#endif

/// A signal of the system to use less memory.
enum MemoryPressure: Sendable { case warning, critical }

extension EntryStorage {
  /// Removes half of the bytes on a warning, and all entries at the critical level.
  func respond(to pressure: MemoryPressure) {
    switch pressure {
    case .warning: trim(to: cost / 2)
    case .critical: removeAll()
    }
  }
}
