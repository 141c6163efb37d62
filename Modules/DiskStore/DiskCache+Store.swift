public import CacheCore

extension DiskCache {
  /// Bodies of entries up to 128 KiB are at hand, and checked.
  public func variants(of resource: String) async throws(CacheError) -> [StoredEntry] {
    let name = EntryName(CacheKey(resource: resource), hashKey: engine.folder.key)
    if engine.surelyLacks(resource: name.resource) { return [] }
    return try await inLane(name) { engine, name throws(CacheError) in try engine.variants(of: resource, name) }
  }

  /// Lists the resource's folder and reads the head of each form in it.
  public func forms(of resource: String) async throws(CacheError) -> [ListedEntry] {
    let name = EntryName(CacheKey(resource: resource), hashKey: engine.folder.key)
    if engine.surelyHasNothing(of: name) { return [] }
    return try await inLane(name) { engine, name throws(CacheError) in try engine.forms(of: resource, name) }
  }

  public func open(_ key: CacheKey, range: Range<Int64>?) async throws(CacheError) -> StoredEntry? {
    let name = EntryName(key, hashKey: engine.folder.key)
    if engine.surelyLacks(name) { return nil }
    return try await inLane(name) { engine, name throws(CacheError) in try engine.open(key, name, range) }
  }

  /// Starts an entry. Up to 64 KiB of its body are kept in memory; beyond that it is written to a temporary file.
  ///
  /// - Throws: `CacheError.Code.readOnly`, `CacheError.Code.closed`, and `CacheError.Code.entryTooLarge` when the metadata names a length above
  ///   the limit.
  public func begin(_ key: CacheKey, _ metadata: StoredMetadata) async throws(CacheError) -> any EntryWriter {
    try engine.requireWritable()
    guard !engine.executor.isClosed else { throw CacheError(.closed, reason: "the store is closed", path: engine.folder.root) }
    return try DiskEntryWriter(key, metadata, engine)
  }

  /// Appends the metadata to the entry's file: one small write, whatever the body's size.
  ///
  /// It is kept under the entry's own revision and body length. Not flushed to the disk, even with ``Durability/file``: what a loss of power can take is
  /// the freshening, never the entry.
  public func refresh(
    _ key: CacheKey, _ metadata: StoredMetadata, ifRevision: Revision
  ) async throws(CacheError) -> Bool {
    try await inLane(key) { engine, name throws(CacheError) in try engine.refresh(key, name, metadata, ifRevision: ifRevision) }
  }

  public func remove(_ key: CacheKey, ifRevision: Revision?) async throws(CacheError) {
    try await inLane(key) { engine, name throws(CacheError) in try engine.remove(key, name, ifRevision: ifRevision) }
  }

  /// Removes everything that was committed before the call. A writer that began before it and commits after it keeps its entry.
  public func removeAll() async throws(CacheError) {
    try await upkeep { engine throws(CacheError) in try engine.removeAll() }
  }

  /// Reads a part of every file, a page or two: seconds for 50,000 entries that are not in the system's memory.
  public func entries(
    where isWanted: @escaping @Sendable (CacheKey, StoredMetadata) -> Bool
  ) async throws(CacheError) -> [ListedEntry] {
    try await upkeep { engine throws(CacheError) in try engine.entries(where: isWanted) }
  }

  private func inLane<Value: Sendable>(
    _ key: CacheKey, _ work: @escaping @Sendable (DiskEngine, EntryName) throws(CacheError) -> Value
  ) async throws(CacheError) -> Value {
    try await inLane(EntryName(key, hashKey: engine.folder.key), work)
  }

  private func inLane<Value: Sendable>(
    _ name: EntryName, _ work: @escaping @Sendable (DiskEngine, EntryName) throws(CacheError) -> Value
  ) async throws(CacheError) -> Value {
    try await engine.executor.run(.entry(name.lane)) { [engine] () throws(CacheError) in try work(engine, name) }
  }
}
