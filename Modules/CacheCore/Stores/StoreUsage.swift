/// The number and size of the entries in a store.
public struct StoreUsage: Hashable, Sendable {
  /// The number of entries. A transformed value counts as an entry of its own. In memory, so does the metadata of each resource.
  public var entries: Int
  /// The size of the entries, in bytes, as the store counts it towards its limit.
  public var bytes: Int64
  /// The most bytes that the store keeps, or `nil` if it has no limit.
  public var limit: Int64?

  /// Creates a usage from its parts.
  public init(entries: Int, bytes: Int64, limit: Int64? = nil) {
    self.entries = entries
    self.bytes = bytes
    self.limit = limit
  }
}

extension StoreUsage: CustomStringConvertible {
  /// The numbers in words: `12 entries, 34567 of 1048576 bytes`.
  public var description: String {
    "\(entries) \(entries == 1 ? "entry" : "entries"), \(bytes)\(limit.map { " of \($0)" } ?? "") bytes"
  }
}
