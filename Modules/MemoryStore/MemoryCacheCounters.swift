/// What a ``MemoryCache`` has done since it was made.
public struct MemoryCacheCounters: Hashable, Sendable {
  /// Why an entry left.
  public enum Reason: String, Hashable, Sendable, CaseIterable {
    /// The cost limit needed room.
    case cost
    /// The count limit needed room.
    case count
    /// Its time to live was over.
    case expired
    /// ``MemoryCache/trim(to:)``, or memory pressure.
    case trimmed
    /// Another entry took its key.
    case replaced
    /// ``MemoryCache/remove(_:ifRevision:)`` or ``MemoryCache/removeAll()``.
    case removed
  }

  /// Look-ups that found an entry.
  public var hits = 0
  /// Look-ups that found none, or an expired one.
  public var misses = 0
  /// Entries that were taken in.
  public var insertions = 0
  /// Entries that a limit refused, or that found only room which other threads kept busy.
  public var refusals = 0
  /// Entries that left, by reason.
  public var evictions: [Reason: Int] = [:]
}
