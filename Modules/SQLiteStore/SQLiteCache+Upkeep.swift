#if SQLite
public import CacheCore

extension SQLiteCache {
  /// Bytes of all entries: bodies, metadata and keys, those of other processes among them. Kept by the database, so it costs one
  /// look.
  public var totalSize: Int64 {
    get async throws(CacheError) { try await engine.file.read { database, _ in try EntryTable.total(database).bytes } }
  }

  /// How many entries there are; see ``totalSize``.
  public var entryCount: Int {
    get async throws(CacheError) { try await engine.file.read { database, _ in try EntryTable.total(database).entries } }
  }

  public func usage() async throws(CacheError) -> StoreUsage? {
    let total = try await engine.file.read { database, _ in try EntryTable.total(database) }
    return StoreUsage(entries: Int(total.entries), bytes: total.bytes, limit: configuration.sizeLimit)
  }

  /// Removes entries, the least recently used first, until they take no more than `size` bytes.
  ///
  /// - Returns: how many were removed.
  @discardableResult
  public func trim(to size: Int64) async throws(CacheError) -> Int { try await engine.trim(to: size) }

  /// Removes the entries whose time to live is over. Reads the metadata of every entry.
  ///
  /// - Returns: how many were removed.
  @discardableResult
  public func removeExpired() async throws(CacheError) -> Int { try await engine.removeExpired() }

  /// Refuses further calls, and further pulls of open bodies, with `CacheError.Code.closed`; returns when the work under way is
  /// done and the file closed.
  public func close() async { await engine.close() }
}
#endif
