#if SQLite
public import CacheCore

extension SQLiteCache {
  /// Returns the variants of a resource. Bodies of up to 128 KiB are in memory and already checked.
  public func variants(of resource: String) async throws(CacheError) -> [StoredEntry] {
    try await engine.variants(of: resource)
  }

  public func transforms(of resource: String) async throws(CacheError) -> [ListedEntry] {
    try await engine.transforms(of: resource)
  }

  public func entry(for key: CacheKey, range: Range<Int64>?) async throws(CacheError) -> StoredEntry? {
    try await engine.entry(for: key, range: range)
  }

  /// Looks up all keys in one transaction, so the results belong to the same moment.
  public func values(for keys: [CacheKey]) async throws(CacheError) -> [CacheKey: StoredEntry] {
    try await engine.values(for: keys)
  }

  /// Starts an entry. Up to 512 KiB of its body stay in memory. A larger body goes into the database, where lookups do not find
  /// it before the commit.
  ///
  /// - Throws: `CacheError.Code.closed`, `CacheError.Code.overloaded` while too many stores wait, or
  ///   `CacheError.Code.entryTooLarge` if the metadata states a length above the limit.
  public func makeWriter(for key: CacheKey, metadata: StoredMetadata) async throws(CacheError) -> any EntryWriter {
    guard !engine.file.isClosed else { throw CacheError(.closed, reason: "the store is closed", path: engine.file.path) }
    guard engine.backlog.hasCapacity else {
      engine.count { $0.refusedWrites += 1 }
      throw engine.overload
    }
    return try SpooledWriter(metadata, SQLiteEntryStorage(key, metadata.revision, engine))
  }

  /// Rewrites the entry's row, whatever the size of the body. The metadata has the revision and body length of the stored entry.
  public func updateMetadata(of key: CacheKey, to metadata: StoredMetadata, ifRevision revision: Revision)
    async throws(CacheError) -> Bool
  {
    do throws(CacheError) {
      return try await engine.updateMetadata(of: key, to: metadata, ifRevision: revision)
    } catch {
      if error.code == .overloaded { engine.count { $0.refusedWrites += 1 } }
      throw error
    }
  }

  public func remove(_ key: CacheKey, ifRevision revision: Revision?) async throws(CacheError) {
    try await engine.remove(key, ifRevision: revision)
  }

  /// Removes every entry committed before the call. A writer that began before the call and commits after it keeps its entry.
  ///
  /// The bytes are deleted in the background. Those of bodies above 128 KiB are deleted a minute later, because another process
  /// may be reading them.
  public func removeAll() async throws(CacheError) {
    try await engine.removeAll()
  }

  /// Returns the wanted entries. It reads the metadata of every entry.
  public func entries(
    where isWanted: @escaping @Sendable (CacheKey, StoredMetadata) -> Bool
  ) async throws(CacheError) -> [ListedEntry] {
    try await engine.entries(where: isWanted)
  }
}
#endif
