/// A value in memory: the bytes of a response, a decoded value, or metadata. Entries with the same ``revision`` belong to the
/// same response.
///
/// An entry is an object, so that a hit allocates nothing. A value that a caller holds outlives its eviction.
public final class MemoryEntry: Sendable {
  /// The revision of the body that the value was made from.
  public let revision: Revision
  /// The cost of the entry, in bytes.
  public let cost: Int
  /// The time to live in the store, or `nil` for the store's default.
  public let expiration: Expiration?
  @usableFromInline let value: any Sendable

  /// Creates an entry that holds `value`.
  public init(_ value: any Sendable, cost: Int, revision: Revision, expiration: Expiration? = nil) {
    self.value = value
    self.cost = max(0, cost)
    self.revision = revision
    self.expiration = expiration
  }

  /// Returns the value, or `nil` if it is not a `Value`.
  @inlinable
  public func value<Value: Sendable>(as type: Value.Type) -> Value? { value as? Value }
}

/// The change that ``MemoryStoring/update(_:_:)`` makes to an entry.
public enum MemoryUpdate: Sendable {
  /// Leaves the entry as it is.
  case keep
  /// Removes the entry.
  case remove
  /// Stores another entry in its place.
  case replace(MemoryEntry)
}

/// A store in memory. It is synchronous, so that a hit does not suspend.
public protocol MemoryStoring: Component {
  /// Returns the entry, or `nil` if it is absent or expired.
  func entry(for key: CacheKey) -> MemoryEntry?
  /// Inserts or replaces an entry. Returns false if the entry exceeds a limit. The key then has no entry.
  @discardableResult
  func insert(_ entry: MemoryEntry, for key: CacheKey) -> Bool
  /// Reads and changes an entry in one atomic step, so that an older response cannot overwrite a newer one.
  ///
  /// - Parameters:
  ///   - key: The key of the entry.
  ///   - change: Called once with the current entry, possibly under the store's lock. It must be quick and must not call the
  ///     store.
  /// - Returns: true if the entry was replaced or removed, false if `change` kept it or if the new entry exceeds a limit.
  @discardableResult
  func update(_ key: CacheKey, _ change: (MemoryEntry?) -> MemoryUpdate) -> Bool
  /// Removes the entry if it has the given revision, or any revision for `nil`.
  func remove(_ key: CacheKey, ifRevision: Revision?)
  /// Removes every entry.
  func removeAll()
  /// Returns the keys of all entries that are not expired, in any order. It does not count as a use.
  ///
  /// The default implementation throws ``CacheError/Code/unsupported``.
  func keys() throws(CacheError) -> [CacheKey]
  /// Returns the number and size of the entries, or `nil` if the store does not count them. The default implementation returns
  /// `nil`.
  func usage() -> StoreUsage?
}

extension MemoryStoring {
  public func keys() throws(CacheError) -> [CacheKey] {
    throw CacheError(.unsupported, reason: "\(Self.self) cannot list its entries")
  }

  public func usage() -> StoreUsage? { nil }
}
