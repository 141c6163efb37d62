#if SQLite
public import CacheCore

/// What a ``SQLiteCache`` did since it was made.
public struct SQLiteCounters: Hashable, Sendable {
  /// Entries that were opened.
  public var hits = 0
  /// Entries that were asked for and are not there, or not any more.
  public var misses = 0
  /// Entries that were found damaged; each is a miss too, unless its body had begun to stream.
  public var damaged = 0
  /// Removals by reason.
  public var evictions: [EvictionReason: Int] = [:]
  /// Entries that were committed.
  public var writes = 0
  /// Entries whose write or commit failed.
  public var failedWrites = 0
  /// Entries, pieces of entries and freshenings that were refused because too much waited to be stored already.
  public var refusedWrites = 0
  /// How often the database was damaged, or gone, and was made anew.
  public var resets = 0

  /// Nothing counted yet.
  public init() {}
}
#endif
