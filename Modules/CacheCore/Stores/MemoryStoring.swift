/// One value in memory: an answer's bytes, a decoded value, or metadata alone. Facets of one resource are tied by their ``revision``.
///
/// Boxed when it is inserted, so a hit allocates nothing. A value that a caller still holds outlives its eviction.
public final class MemoryEntry: Sendable {
  /// The body that the value was made from.
  public let revision: Revision
  /// What the entry weighs, in bytes.
  public let cost: Int
  /// The time to live in the store; nil: the store's default.
  public let expiration: Expiration?
  @usableFromInline let value: any Sendable

  /// An entry that holds `value`.
  public init(_ value: any Sendable, cost: Int, revision: Revision, expiration: Expiration? = nil) {
    self.value = value
    self.cost = max(0, cost)
    self.revision = revision
    self.expiration = expiration
  }

  /// The value, when it is a `Value`.
  @inlinable
  public func value<Value: Sendable>(as type: Value.Type) -> Value? { value as? Value }
}

/// What ``MemoryStoring/update(_:_:)`` does with the entry it found.
public enum MemoryUpdate: Sendable {
  /// Leaves things as they are.
  case keep
  /// Removes the entry.
  case remove
  /// Stores this one in its place.
  case replace(MemoryEntry)
}

/// A store in memory: synchronous, so that a hit needs no suspension.
public protocol MemoryStoring: Component {
  /// The entry, unless it is absent or expired.
  func entry(for key: CacheKey) -> MemoryEntry?
  /// Stores or replaces. False when a bound refuses the entry; the key then holds nothing.
  @discardableResult
  func insert(_ entry: MemoryEntry, for key: CacheKey) -> Bool
  /// Looks and changes in one step, which nobody comes between: an older answer must not overwrite a newer one.
  ///
  /// - Parameters:
  ///   - key: what is looked at and changed.
  ///   - change: called once, perhaps under the store's lock: it must be quick and must not call the store.
  /// - Returns: whether the key holds what `change` wanted; false when it kept things as they are, or a bound refused the entry.
  @discardableResult
  func update(_ key: CacheKey, _ change: (MemoryEntry?) -> MemoryUpdate) -> Bool
  /// Removes the entry, but not another revision than the one given.
  func remove(_ key: CacheKey, ifRevision: Revision?)
  /// Removes everything.
  func removeAll()
  /// The key of every entry that is neither absent nor expired, in any order. To be listed is no use.
  ///
  /// A store that can't list what it holds leaves this to the default, which throws ``CacheError/Code/unsupported``.
  func keys() throws(CacheError) -> [CacheKey]
}

extension MemoryStoring {
  /// Throws ``CacheError/Code/unsupported``: a store that does not say otherwise can't list what it holds.
  public func keys() throws(CacheError) -> [CacheKey] {
    throw CacheError(.unsupported, reason: "\(Self.self) can't list what it holds")
  }
}
