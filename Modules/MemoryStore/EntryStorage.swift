internal import CacheCore

/// The shards of a store, with the type of their policy erased.
protocol EntryStorage: AnyObject, Sendable {
  var shardCount: Int { get }
  /// The number of bytes of all entries.
  var cost: Int { get }
  var count: Int { get }
  var counters: MemoryCacheCounters { get }

  func entry(for key: CacheKey) -> MemoryEntry?
  func insert(_ entry: MemoryEntry, for key: CacheKey) -> Bool
  func update(_ key: CacheKey, _ change: (MemoryEntry?) -> MemoryUpdate) -> Bool
  func remove(_ key: CacheKey, ifRevision: Revision?)
  func removeAll()
  func trim(to cost: Int)
  func removeExpired()
  func keys() -> [CacheKey]
}

/// The rules for when entries of a store expire. It is a class, so that a hit does not copy values that it seldom needs.
final class TTLPolicy: Sendable {
  let clock: any CacheClock
  /// The time to live of entries that state none.
  let usual: Expiration
  let slidesOnRead: Bool

  init(clock: any CacheClock, usual: Expiration, slidesOnRead: Bool) {
    (self.clock, self.usual, self.slidesOnRead) = (clock, usual, slidesOnRead)
  }

  var sliding: Expiration? { slidesOnRead ? usual : nil }

  /// - Parameter now: The current time, which is evaluated only if the deadline depends on it.
  func deadline(of entry: MemoryEntry, from now: @autoclosure () -> Timestamp) -> Timestamp {
    switch entry.expiration ?? usual {
    case .never: .distantFuture
    case let expiration: expiration.deadline(from: now())
    }
  }
}
