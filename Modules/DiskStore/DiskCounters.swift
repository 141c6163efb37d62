public import CacheCore

/// What a ``DiskCache`` did since it was made.
public struct DiskCounters: Hashable, Sendable {
  /// Entries that were opened.
  public var hits = 0
  /// Entries that were asked for and are not there, or not any more.
  public var misses = 0
  /// Files that were found damaged; each is a miss too, unless its body had begun to stream.
  public var damaged = 0
  /// Removals by reason.
  public var evictions: [EvictionReason: Int] = [:]
  /// Entries that were committed.
  public var writes = 0
  /// Entries whose write or commit failed.
  public var failedWrites = 0
  /// Entries, and freshenings, that were refused because too much waited to be stored already; see
  /// ``DiskCache/Configuration/pendingLimit``.
  public var refusedWrites = 0
  /// How often nothing more fitted on the disk, or the quota. Each time a tenth of what is stored is evicted, but
  /// never the last entry.
  public var fullDisk = 0
  /// Files that the store wanted to remove and could not.
  public var failedRemovals = 0

  /// Nothing counted yet.
  public init() {}
}
