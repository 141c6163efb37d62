internal import CacheCore

/// What is left of a store's shards when their policy's type is forgotten.
protocol EntryStorage: AnyObject, Sendable {
  var shardCount: Int { get }
  /// Bytes of all entries.
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

/// When entries of a store expire. A class, so that a hit does not copy what it seldom needs.
final class TTLPolicy: Sendable {
  let clock: any CacheClock
  /// Of entries that state none.
  let usual: Expiration
  let slidesOnRead: Bool

  init(clock: any CacheClock, usual: Expiration, slidesOnRead: Bool) {
    (self.clock, self.usual, self.slidesOnRead) = (clock, usual, slidesOnRead)
  }

  var sliding: Expiration? { slidesOnRead ? usual : nil }

  func deadline(of entry: MemoryEntry) -> Timestamp {
    switch entry.expiration ?? usual {
    case .never: .distantFuture
    case let expiration: expiration.deadline(from: clock.now)
    }
  }
}
