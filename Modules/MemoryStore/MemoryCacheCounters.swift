public import CacheCore

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
