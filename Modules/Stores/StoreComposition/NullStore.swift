public import CacheCore

/// A store without entries, for interfaces that require a store.
///
/// ```swift
/// configuration.store = NullStore()
/// ```
///
/// Every lookup is a miss, and removals do nothing. Writes are refused with `CacheError.Code.readOnly`, after which a load
/// continues without the store.
public struct NullStore: CacheStore {
  /// An identifier that all null stores share.
  public let id = ComponentID(NullStore.self)

  /// Creates a store without entries.
  public init() {}

  public func variants(of resource: String) async throws(CacheError) -> [StoredEntry] { [] }

  public func transforms(of resource: String) async throws(CacheError) -> [ListedEntry] { [] }

  public func entry(for key: CacheKey, range: Range<Int64>?) async throws(CacheError) -> StoredEntry? { nil }

  public func values(for keys: [CacheKey]) async throws(CacheError) -> [CacheKey: StoredEntry] { [:] }

  public func usage() async throws(CacheError) -> StoreUsage? { StoreUsage(entries: 0, bytes: 0, limit: 0) }

  /// - Throws: Always `CacheError.Code.readOnly`.
  public func makeWriter(for key: CacheKey, metadata: StoredMetadata) async throws(CacheError) -> any EntryWriter {
    throw CacheError(.readOnly, reason: "the store accepts no entries")
  }

  public func updateMetadata(of key: CacheKey, to metadata: StoredMetadata, ifRevision: Revision) async throws(CacheError) -> Bool
  { false }

  public func remove(_ key: CacheKey, ifRevision: Revision?) async throws(CacheError) {}

  public func removeAll() async throws(CacheError) {}

  public func entries(
    where isWanted: @escaping @Sendable (CacheKey, StoredMetadata) -> Bool
  ) async throws(CacheError) -> [ListedEntry] { [] }
}
