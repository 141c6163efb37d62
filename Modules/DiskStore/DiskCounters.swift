public import CacheCore

/// The number of operations of a ``DiskCache`` since it was created.
public struct DiskCounters: Hashable, Sendable {
  /// Lookups that found an entry.
  public var hits = 0
  /// Lookups that found no entry, or only an expired or damaged one.
  public var misses = 0
  /// Files found damaged. Each also counts as a miss unless its body had begun to stream.
  public var damaged = 0
  /// Removals by reason.
  public var evictions: [EvictionReason: Int] = [:]
  /// Entries that were committed.
  public var writes = 0
  /// Entries whose write or commit failed.
  public var failedWrites = 0
  /// Entries and metadata updates that were refused because too many stores were waiting; see
  /// ``DiskCache/Configuration/pendingLimit``.
  public var refusedWrites = 0
  /// Stores that found the disk or the quota full. Each one evicts a tenth of the cache, but never the last entry.
  public var fullDisk = 0
  /// Files that the store could not remove.
  public var failedRemovals = 0

  /// Creates counters that are all zero.
  public init() {}
}
