#if SQLite
public import CacheCore

extension SQLiteCache {
  /// The total size in bytes of all entries (bodies, metadata and keys), including those of other processes. The database
  /// maintains it, so this is a single query.
  public var totalSize: Int64 {
    get async throws(CacheError) { try await engine.file.read { database, _ in try EntryTable.total(database).bytes } }
  }

  /// The number of entries; see ``totalSize``.
  public var entryCount: Int {
    get async throws(CacheError) { try await engine.file.read { database, _ in try EntryTable.total(database).entries } }
  }

  public func usage() async throws(CacheError) -> StoreUsage? {
    let total = try await engine.file.read { database, _ in try EntryTable.total(database) }
    return StoreUsage(entries: Int(total.entries), bytes: total.bytes, limit: configuration.sizeLimit)
  }

  /// Removes the least recently used entries until the total size is at most `size` bytes. With zero or less, none remains.
  ///
  /// - Returns: The number of removed entries.
  @discardableResult
  public func trim(to size: Int64) async throws(CacheError) -> Int { try await engine.trim(to: size) }

  /// Removes the entries whose time to live has passed. It reads the metadata of every entry.
  ///
  /// - Returns: The number of removed entries.
  @discardableResult
  public func removeExpired() async throws(CacheError) -> Int { try await engine.removeExpired() }

  /// Waits for all work in progress and closes the file. Further calls and reads from open bodies throw `CacheError.Code.closed`.
  public func close() async { await engine.close() }
}
#endif
