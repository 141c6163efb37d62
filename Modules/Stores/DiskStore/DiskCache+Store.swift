public import CacheCore

extension DiskCache {
  /// Returns the variants of a resource. Bodies of up to 128 KiB are in memory and already checked.
  public func variants(of resource: String) async throws(CacheError) -> [StoredEntry] {
    let name = EntryName(CacheKey(resource: resource), hashKey: engine.folder.key)
    if engine.surelyLacks(resource: name.resource) { return [] }
    if let entry = engine.entryWithoutWaiting(CacheKey(resource: resource), name, alone: true) { return [entry] }
    return try await inLane(name) { engine, name throws(CacheError) in try engine.variants(of: resource, name) }
  }

  /// Returns the entry of a resource with a single variant of at most 64 KiB that the system has in memory. It returns `nil` on
  /// platforms other than Linux.
  public func variantsWithoutWaiting(of resource: String) -> [StoredEntry]? {
    let key = CacheKey(resource: resource)
    let name = EntryName(key, hashKey: engine.folder.key)
    return engine.entryWithoutWaiting(key, name, alone: true, requiresBody: true).map { [$0] }
  }

  /// Lists the resource's folder and reads the start of each transformed value in it.
  public func transforms(of resource: String) async throws(CacheError) -> [ListedEntry] {
    let name = EntryName(CacheKey(resource: resource), hashKey: engine.folder.key)
    if engine.surelyLacksTransforms(of: name) { return [] }
    return try await inLane(name) { engine, name throws(CacheError) in try engine.transforms(of: resource, name) }
  }

  public func entry(for key: CacheKey, range: Range<Int64>?) async throws(CacheError) -> StoredEntry? {
    let name = EntryName(key, hashKey: engine.folder.key)
    if engine.surelyLacks(name) { return nil }
    if let entry = engine.entryWithoutWaiting(key, name, range, alone: false) { return entry }
    return try await inLane(name) { engine, name throws(CacheError) in try engine.open(key, name, range) }
  }

  /// Opens all entries in a few jobs, each of which handles many of them.
  public func values(for keys: [CacheKey]) async throws(CacheError) -> [CacheKey: StoredEntry] {
    let items = items(keys).filter { !engine.surelyLacks($0.name) }
    let results = try await inBatches(items) { engine, item in
      Result { () throws(CacheError) in try engine.open(item.key, item.name, nil) }
    }
    var found: [CacheKey: StoredEntry] = [:]
    for (key, result) in results { found[key] = try result.get() }
    return found
  }

  /// Starts an entry. Up to 64 KiB of its body stay in memory; a larger body is written to a temporary file.
  ///
  /// The writer checks whether the folder is writable. This method repeats that check only if the last one failed.
  ///
  /// - Throws: `CacheError.Code.readOnly`, `CacheError.Code.closed`, `CacheError.Code.overloaded` while too many stores wait, or
  ///   `CacheError.Code.entryTooLarge` if the metadata states a length above the limit.
  public func makeWriter(for key: CacheKey, metadata: StoredMetadata) async throws(CacheError) -> any EntryWriter {
    try engine.requireWritable(checksAgain: false)
    guard !engine.executor.isClosed else { throw CacheError(.closed, reason: "the store is closed", path: engine.folder.root) }
    guard !engine.executor.isFull else {
      engine.count { $0.refusedWrites += 1 }
      throw engine.executor.error(.overloaded)
    }
    return try DiskEntryWriter(key, metadata, engine)
  }

  /// Appends the metadata to the entry's file with one small write, whatever the size of the body.
  ///
  /// The record has the revision and body length of the stored entry. It is not flushed, even with ``Durability/file``: a power
  /// failure can lose the update, but never the entry.
  public func updateMetadata(of key: CacheKey, to metadata: StoredMetadata, ifRevision: Revision) async throws(CacheError) -> Bool
  {
    let name = EntryName(key, hashKey: engine.folder.key)
    do throws(CacheError) {
      return try await engine.executor.run(.storing(name.lane, bytes: MetadataRecord.slot)) {
        [engine] () throws(CacheError) in try engine.updateMetadata(key, name, ifRevision: ifRevision) { _ in metadata }
      }
    } catch {
      if error.code == .overloaded { engine.count { $0.refusedWrites += 1 } }
      throw error
    }
  }

  public func remove(_ key: CacheKey, ifRevision: Revision?) async throws(CacheError) {
    try await inLane(EntryName(key, hashKey: engine.folder.key)) { engine, name throws(CacheError) in
      try engine.remove(key, name, ifRevision: ifRevision)
    }
  }

  /// Removes all entries in a few jobs, each of which handles many of them, folder by folder.
  ///
  /// - Throws: The first error, after every entry was tried.
  public func remove(_ keys: [CacheKey]) async throws(CacheError) {
    let names = keys.map { EntryName($0, hashKey: engine.folder.key) }.sorted { $0.resource < $1.resource }
    let left = Set(try await inJobs(names) { engine, part in engine.remove(part) })
    guard !left.isEmpty else { return }
    let rest = keys.filter { left.contains(EntryName($0, hashKey: engine.folder.key)) }
    try await changeInBatches(rest) { engine, item throws(CacheError) in
      try engine.remove(item.key, item.name, ifRevision: nil)
    }
  }

  /// Marks all entries stale in a few jobs, each of which handles many of them.
  public func markStale(_ keys: [CacheKey], at now: Timestamp) async throws(CacheError) {
    try await changeInBatches(keys) { engine, item throws(CacheError) in
      _ = try engine.updateMetadata(item.key, item.name, ifRevision: nil) { $0.markedStale(at: now) }
    }
  }

  /// Removes every entry committed before the call. A writer that began before the call and commits after it keeps its entry.
  public func removeAll() async throws(CacheError) {
    try await performMaintenance { engine throws(CacheError) in try engine.removeAll() }
  }

  /// Returns the entries, the least recently used first. It reads one or two pages of every file, which is slow for many files
  /// that the system does not have in memory.
  public func entries(
    where isWanted: @escaping @Sendable (CacheKey, StoredMetadata) -> Bool
  ) async throws(CacheError) -> [ListedEntry] {
    try await performMaintenance { engine throws(CacheError) in try engine.entries(where: isWanted) }
  }

  // MARK: Batches

  private struct BatchItem: Sendable {
    let key: CacheKey
    let name: EntryName
  }

  private func items(_ keys: [CacheKey]) -> [BatchItem] {
    Set(keys).map { BatchItem(key: $0, name: EntryName($0, hashKey: engine.folder.key)) }
  }

  /// Changes entries in batches.
  ///
  /// - Throws: The first error, after every entry was tried.
  private func changeInBatches(
    _ keys: [CacheKey], _ change: @escaping @Sendable (DiskEngine, BatchItem) throws(CacheError) -> Void
  ) async throws(CacheError) {
    let results = try await inBatches(items(keys)) { engine, item in
      Result { () throws(CacheError) in try change(engine, item) }
    }
    for result in results.values { try result.get() }
  }

  /// The number of entries that one thread handles before waking another thread pays off.
  private static let itemsPerThread = 16
  /// The maximum number of entries in one job, because single reads wait for it.
  private static let itemsPerJob = 256

  /// Runs `work` for each item in its resource's turn, with many items in one job, and returns its results.
  ///
  /// - Throws: `CacheError.Code.closed`.
  private func inBatches<Value: Sendable>(
    _ items: [BatchItem], _ work: @escaping @Sendable (DiskEngine, BatchItem) -> Value
  ) async throws(CacheError) -> [CacheKey: Value] {
    let results = try await inJobs(items) { engine, part in
      part.map { item in (item, engine.executor.inTurn(item.name.lane) { work(engine, item) }) }
    }
    var found: [CacheKey: Value] = [:]
    for (item, value) in results {
      // If other operations on the resource are in progress, the item waits for its turn.
      found[item.key] = if let value { value } else { try await inLane(item.name) { engine, _ in work(engine, item) } }
    }
    return found
  }

  /// Runs `work` for parts of the items, each as one job, and returns its results.
  ///
  /// - Throws: `CacheError.Code.closed`.
  private func inJobs<Item: Sendable, Value: Sendable>(
    _ items: [Item], _ work: @escaping @Sendable (DiskEngine, ArraySlice<Item>) -> [Value]
  ) async throws(CacheError) -> [Value] {
    guard !items.isEmpty else { return [] }
    let width = min(configuration.ioWidth, (items.count + Self.itemsPerThread - 1) / Self.itemsPerThread)
    let size = min(Self.itemsPerJob, (items.count + width - 1) / width)
    let results = await withTaskGroup(of: Result<[Value], CacheError>.self) { group in
      var results: [Result<[Value], CacheError>] = []
      for (number, start) in stride(from: 0, to: items.count, by: size).enumerated() {
        if number >= width, let result = await group.next() { results.append(result) }
        let part = items[start..<min(start + size, items.count)]
        group.addTask { [engine] in
          do throws(CacheError) {
            return .success(try await engine.executor.run(.unordered) { work(engine, part) })
          } catch {
            return .failure(error)
          }
        }
      }
      return await group.reduce(into: results) { $0.append($1) }
    }
    var values: [Value] = []
    for result in results { values += try result.get() }
    return values
  }

  private func inLane<Value: Sendable>(
    _ name: EntryName, _ work: @escaping @Sendable (DiskEngine, EntryName) throws(CacheError) -> Value
  ) async throws(CacheError) -> Value {
    try await engine.executor.run(.entry(name.lane)) { [engine] () throws(CacheError) in try work(engine, name) }
  }
}
