/// The number and size of the entries in a store.
public struct StoreUsage: Hashable, Sendable {
  /// The number of entries. A transformed value counts as a separate entry. So does the metadata of a resource if it comes from a
  /// memory store itself, and not from `ResourceManager.usage()`.
  public var entries: Int
  /// The size of the entries in bytes, as counted towards the store's limit.
  public var bytes: Int64
  /// The maximum size in bytes, or `nil` if the store has no limit.
  public var limit: Int64?

  /// Creates a usage.
  public init(entries: Int, bytes: Int64, limit: Int64? = nil) {
    self.entries = entries
    self.bytes = bytes
    self.limit = limit
  }
}

extension StoreUsage: CustomStringConvertible {
  /// The numbers as text: `12 entries, 34567 of 1048576 bytes`.
  public var description: String {
    "\(entries) \(entries == 1 ? "entry" : "entries"), \(bytes)\(limit.map { " of \($0)" } ?? "") bytes"
  }
}
