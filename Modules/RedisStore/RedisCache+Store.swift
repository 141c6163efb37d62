#if Redis
public import CacheCore

extension RedisCache {
  /// Returns the variants of a resource. Bodies of up to 64 KiB are in memory and already checked.
  public func variants(of resource: String) async throws(CacheError) -> [StoredEntry] {
    try await engine.variants(of: resource)
  }

  /// Whether the cache is on a single server. Connecting then takes at most `connectTimeout` plus `timeout`, and each of the few
  /// commands of a lookup takes at most `timeout`. A lookup in a cluster may first try all its servers.
  public var boundsLookupTime: Bool { !engine.isCluster }

  public func transforms(of resource: String) async throws(CacheError) -> [ListedEntry] {
    try await engine.transforms(of: resource)
  }

  public func entry(for key: CacheKey, range: Range<Int64>?) async throws(CacheError) -> StoredEntry? {
    try await engine.entry(for: key, range: range)
  }

  /// Starts an entry. Up to 512 KiB of its body stay in memory. A larger body goes to the server as it arrives, where lookups do
  /// not find it before the commit.
  ///
  /// - Throws: `CacheError.Code.entryTooLarge` if the metadata states a length above the limit.
  public func makeWriter(for key: CacheKey, metadata: StoredMetadata) async throws(CacheError) -> any EntryWriter {
    try SpooledWriter(metadata, RedisEntryStorage(key, engine))
  }

  /// Starts an entry like ``makeWriter(for:metadata:)``.
  ///
  /// - Throws: `CacheError.Code.entryTooLarge`. The commit throws `CacheError.Code.superseded` if a later lease has been granted.
  public func makeWriter(
    for key: CacheKey, metadata: StoredMetadata, lease: any RequestLease
  ) async throws(CacheError) -> any EntryWriter {
    try SpooledWriter(metadata, RedisEntryStorage(key, engine, lease: lease))
  }

  /// Replaces the metadata in one atomic step, without sending the body. The entry keeps its revision and the length of its body.
  public func updateMetadata(of key: CacheKey, to metadata: StoredMetadata, ifRevision revision: Revision)
    async throws(CacheError) -> Bool
  {
    try await engine.updateMetadata(of: key, to: metadata, ifRevision: revision)
  }

  public func remove(_ key: CacheKey, ifRevision revision: Revision?) async throws(CacheError) {
    try await engine.remove(key, ifRevision: revision)
  }

  /// Removes several entries, up to 128 of them with one request.
  public func remove(_ keys: [CacheKey]) async throws(CacheError) { try await engine.remove(keys) }

  /// Removes every entry committed before the call. It looks at all keys of the servers, in steps.
  public func removeAll() async throws(CacheError) { try await engine.removeAll() }

  /// Returns the wanted entries. It looks at all keys of the servers, in steps, and reads the metadata of every entry.
  public func entries(
    where isWanted: @escaping @Sendable (CacheKey, StoredMetadata) -> Bool
  ) async throws(CacheError) -> [ListedEntry] {
    try await engine.entries(where: isWanted)
  }

  /// Returns the keys of the entries with a cache tag. It reads an index if no server evicts keys. Otherwise it scans all keys of
  /// the database, because a server may have evicted the index.
  public func keys(tagged tag: String) async throws(CacheError) -> Set<CacheKey> { try await engine.keys(tagged: tag) }
}
#endif
