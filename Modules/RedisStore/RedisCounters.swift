#if Redis
/// The number of operations of a ``RedisCache`` since it was created.
public struct RedisCounters: Hashable, Sendable {
  /// Lookups that found an entry.
  public var hits = 0
  /// Lookups that found no entry, or only an expired or damaged one.
  public var misses = 0
  /// Entries found damaged, or without their body because the server evicted it.
  public var damaged = 0
  /// Entries that were committed.
  public var writes = 0
  /// Entries whose write or commit failed.
  public var failedWrites = 0
  /// Calls to the server that failed because it was unavailable or because too many calls were pending.
  public var failedCalls = 0
  /// Connections that the server closed, or that were closed because a reply was late.
  public var lostConnections = 0
  /// Commands that a cluster redirected to another node.
  public var redirections = 0

  /// Creates counters that are all zero.
  public init() {}
}
#endif
