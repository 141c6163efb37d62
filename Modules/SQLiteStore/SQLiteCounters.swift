#if SQLite
public import CacheCore

/// The number of operations of a ``SQLiteCache`` since it was created.
public struct SQLiteCounters: Hashable, Sendable {
  /// Lookups that found an entry.
  public var hits = 0
  /// Lookups that found no entry, or only an expired or damaged one.
  public var misses = 0
  /// Entries found damaged. Each also counts as a miss unless its body had begun to stream.
  public var damaged = 0
  /// Removals by reason.
  public var evictions: [EvictionReason: Int] = [:]
  /// Entries that were committed.
  public var writes = 0
  /// Entries whose write or commit failed.
  public var failedWrites = 0
  /// Entries, body chunks and metadata updates that were refused because too many stores were waiting.
  public var refusedWrites = 0
  /// Databases that were damaged or missing and were recreated.
  public var resets = 0

  /// Creates counters that are all zero.
  public init() {}
}
#endif
