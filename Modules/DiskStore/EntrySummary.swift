public import CacheCore

/// What is known of a stored entry without its body.
public struct EntrySummary: Sendable {
  /// What it is filed under.
  public var key: CacheKey
  /// Bytes that its file takes.
  public var size: Int64
  /// When its body was stored.
  public var stored: Timestamp
  /// When it was last used, exact to a minute for uses by other processes.
  public var lastUsed: Timestamp
  /// Everything else: head, validators, times, the body's length.
  public var metadata: StoredMetadata

  /// A summary of its parts.
  public init(key: CacheKey, size: Int64, stored: Timestamp, lastUsed: Timestamp, metadata: StoredMetadata) {
    self.key = key
    self.size = size
    self.stored = stored
    self.lastUsed = lastUsed
    self.metadata = metadata
  }
}
