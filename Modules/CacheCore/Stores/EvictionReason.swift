/// The reason that an entry left a store.
public enum EvictionReason: String, Hashable, Sendable, CaseIterable {
  /// The entries exceeded the limit of bytes, or of cost in memory.
  case size
  /// The entries exceeded the limit of their number.
  case count
  /// The time to live of the entry had passed.
  case expired
  /// The store was trimmed, by its caller or under memory pressure.
  case trimmed
  /// The disk was full.
  case fullDisk
  /// Another entry was stored under the key.
  case replaced
  /// A caller removed the entry.
  case removed
}
