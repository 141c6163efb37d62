/// The reason why an entry left a store.
public enum EvictionReason: String, Hashable, Sendable, CaseIterable {
  /// The entries exceeded the limit in bytes, or the cost limit in memory.
  case size
  /// The entries exceeded the count limit.
  case count
  /// The entry's time to live had passed.
  case expired
  /// The store was trimmed, by its caller or because of memory pressure.
  case trimmed
  /// The disk was full.
  case fullDisk
  /// Another entry was stored under the same key.
  case replaced
  /// A caller removed the entry.
  case removed
}
