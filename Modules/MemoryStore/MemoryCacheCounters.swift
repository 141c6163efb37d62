public import CacheCore

/// What a ``MemoryCache`` has done since it was made.
public struct MemoryCacheCounters: Hashable, Sendable {
  /// Look-ups that found an entry.
  public var hits = 0
  /// Look-ups that found none, or an expired one.
  public var misses = 0
  /// Entries that were taken in.
  public var insertions = 0
  /// Entries that a limit refused, or that found only room which other threads kept busy.
  public var refusals = 0
  /// Entries that left, by reason.
  public var evictions: [EvictionReason: Int] = [:]
}
