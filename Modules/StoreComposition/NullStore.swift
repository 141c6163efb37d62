public import CacheCore

/// A store that holds nothing and takes nothing: where a store has to be named and none is wanted.
///
/// Every look is a miss, removing is no error, and writing is refused with `CacheError.Code.readOnly`, as a full store would
/// refuse it: a load goes on without.
public struct NullStore: CacheStore {
  /// All of them answer alike.
  public let id = ComponentID(NullStore.self)

  /// The store that holds nothing.
  public init() {}

  public func variants(of resource: String) async throws(CacheError) -> [StoredEntry] { [] }

  public func transforms(of resource: String) async throws(CacheError) -> [ListedEntry] { [] }

  public func entry(for key: CacheKey, range: Range<Int64>?) async throws(CacheError) -> StoredEntry? { nil }

  public func values(for keys: [CacheKey]) async throws(CacheError) -> [CacheKey: StoredEntry] { [:] }

  public func usage() async throws(CacheError) -> StoreUsage? { StoreUsage(entries: 0, bytes: 0, limit: 0) }

  /// - Throws: `CacheError.Code.readOnly`, always.
  public func makeWriter(for key: CacheKey, metadata: StoredMetadata) async throws(CacheError) -> any EntryWriter {
    throw CacheError(.readOnly, reason: "the store takes no entries")
  }

  public func updateMetadata(of key: CacheKey, to metadata: StoredMetadata, ifRevision: Revision) async throws(CacheError) -> Bool
  { false }

  public func remove(_ key: CacheKey, ifRevision: Revision?) async throws(CacheError) {}

  public func removeAll() async throws(CacheError) {}

  public func entries(
    where isWanted: @escaping @Sendable (CacheKey, StoredMetadata) -> Bool
  ) async throws(CacheError) -> [ListedEntry] { [] }
}
