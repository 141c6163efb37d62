#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A value in memory, such as the bytes of a response, a decoded value, or metadata. Entries with equal ``revision`` belong to
/// the same response.
///
/// It is an object, so a hit allocates nothing. A value that a caller references remains valid after its eviction.
public final class MemoryEntry: Sendable {
  /// The revision of the body that the value was made from.
  public let revision: Revision
  /// The cost of the entry, in bytes.
  public let cost: Int
  /// The time to live, or `nil` for the store's default.
  public let expiration: Expiration?
  @usableFromInline let value: any Sendable
  /// The value if it is bytes, as most are. The cast of ``value`` takes as long as half a lookup.
  @usableFromInline let data: Data?
  /// The manager's record of the response, or `nil` if the entry has none.
  package let record: (any AnyObject & Sendable)?

  /// Creates an entry for `value`.
  public convenience init(_ value: any Sendable, cost: Int, revision: Revision, expiration: Expiration? = nil) {
    self.init(value, cost: cost, revision: revision, expiration: expiration, record: nil)
  }

  /// Creates an entry that refers to the record of its response.
  package init(
    _ value: any Sendable, cost: Int, revision: Revision, expiration: Expiration?, record: (any AnyObject & Sendable)?
  ) {
    self.value = value
    data = value as? Data
    self.cost = max(0, cost)
    self.revision = revision
    self.expiration = expiration
    self.record = record
  }

  /// Creates an entry with the value of another one.
  package convenience init(_ other: MemoryEntry, record: any AnyObject & Sendable) {
    self.init(other.value, cost: other.cost, revision: other.revision, expiration: other.expiration, record: record)
  }

  /// Returns the value, or `nil` if it is not a `Value`.
  @inlinable
  public func value<Value: Sendable>(as type: Value.Type) -> Value? {
    // A cast of the optional would be dynamic, too.
    if Value.self == Data.self, let data { return data as? Value }
    return value as? Value
  }
}

/// A change that ``MemoryStoring/update(_:_:)`` makes to an entry.
public enum MemoryUpdate: Sendable {
  /// Leaves the entry unchanged.
  case keep
  /// Removes the entry.
  case remove
  /// Replaces the entry.
  case replace(MemoryEntry)
}

/// A memory store. It is synchronous, so a hit does not suspend.
///
/// ```swift
/// configuration.memory = MemoryCache()
/// ```
public protocol MemoryStoring: Component {
  /// Returns the entry, or `nil` if it is missing or expired.
  func entry(for key: CacheKey) -> MemoryEntry?
  /// Inserts or replaces an entry. Returns `false` if the entry exceeds a limit. In that case the key has no entry.
  ///
  /// A store evicts other entries for this one, and never the entry itself.
  @discardableResult
  func insert(_ entry: MemoryEntry, for key: CacheKey) -> Bool
  /// Reads and changes an entry in one atomic step, so that an older response cannot overwrite a newer one.
  ///
  /// - Parameters:
  ///   - key: The key of the entry.
  ///   - change: Returns the change. It is called once with the current entry, possibly under the store's lock. It must be quick
  ///     and must not call the store.
  /// - Returns: `true` if the entry was replaced or removed. `false` if it is unchanged or if the new entry exceeds a limit.
  @discardableResult
  func update(_ key: CacheKey, _ change: (MemoryEntry?) -> MemoryUpdate) -> Bool
  /// Removes the entry if it has the given revision. With `nil`, any revision matches.
  func remove(_ key: CacheKey, ifRevision: Revision?)
  /// Removes all entries.
  func removeAll()
  /// Returns the keys of all entries that have not expired, in any order. It does not count as a use.
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
