#if SQLite
public import CacheCore

extension SQLiteCache {
  /// Bodies of entries up to 128 KiB are at hand, and checked.
  public func variants(of resource: String) async throws(CacheError) -> [StoredEntry] {
    try await engine.variants(of: resource)
  }

  public func transforms(of resource: String) async throws(CacheError) -> [ListedEntry] {
    try await engine.transforms(of: resource)
  }

  public func entry(for key: CacheKey, range: Range<Int64>?) async throws(CacheError) -> StoredEntry? {
    try await engine.entry(for: key, range: range)
  }

  /// Looks for all of them in one transaction: they are as they were at one moment.
  public func values(for keys: [CacheKey]) async throws(CacheError) -> [CacheKey: StoredEntry] {
    try await engine.values(for: keys)
  }

  /// Starts an entry. Up to 512 KiB of its body are kept in memory; beyond that it goes into the database, where nobody finds it
  /// before the commit.
  ///
  /// - Throws: `CacheError.Code.closed`, `CacheError.Code.overloaded` while too much waits to be stored, and
  ///   `CacheError.Code.entryTooLarge` when the metadata names a length above the limit.
  public func makeWriter(for key: CacheKey, metadata: StoredMetadata) async throws(CacheError) -> any EntryWriter {
    guard !engine.file.isClosed else { throw CacheError(.closed, reason: "the store is closed", path: engine.file.path) }
    guard engine.backlog.hasRoom else {
      engine.count { $0.refusedWrites += 1 }
      throw engine.overload
    }
    return try SQLiteEntryWriter(key, metadata, engine)
  }

  /// Rewrites the entry's row, whatever the body's size. The metadata is kept under the entry's own revision and body length.
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

  /// Removes everything that was committed before the call. A writer that began before it and commits after it keeps its entry.
  ///
  /// The bytes are cleared away in the background; those of bodies above 128 KiB a minute later, since another process may be
  /// reading them.
  public func removeAll() async throws(CacheError) {
    try await engine.removeAll()
  }

  /// Reads the metadata of every entry.
  public func entries(
    where isWanted: @escaping @Sendable (CacheKey, StoredMetadata) -> Bool
  ) async throws(CacheError) -> [ListedEntry] {
    try await engine.entries(where: isWanted)
  }
}
#endif
