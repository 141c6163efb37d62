#if SQLite
internal import CacheCore
internal import GRDB

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// The state that a cache shares with its writers and bodies.
final class SQLiteEngine: Sendable {
  /// The maximum size in bytes of a body that is returned in memory with its entry.
  static let inMemoryBodyLimit: Int64 = 131_072
  /// The time for which a larger body stays for readers in other processes after its entry was replaced or removed.
  static let retention = Duration.seconds(60)
  /// The time without a write after which the writer's process is considered dead.
  static let writeTimeout = Duration.seconds(600)

  let file: DatabaseFile
  let configuration: SQLiteCache.Configuration
  let leases = EntryLeases()
  let backlog: WriteBacklog
  private let counted = Lock(SQLiteCounters())
  private let uses = Lock<[EntryLeases.EntryIdentity: Timestamp]>([:])
  let isCollecting = Lock(false)
  /// The entries to remove that lookups found, and the task that removes them.
  let clearing = Lock<(cleanup: CleanupQueue?, task: Task<Void, Never>?)>((nil, nil))

  init(_ path: String, _ configuration: SQLiteCache.Configuration) throws(CacheError) {
    self.configuration = configuration
    backlog = WriteBacklog(count: configuration.pendingLimit, bytes: configuration.pendingSizeLimit)
    file = try DatabaseFile(path, configuration)
  }

  var now: Timestamp { configuration.clock.now }

  var counters: SQLiteCounters {
    var counters = counted.withLock { $0 }
    counters.resets = file.resets
    return counters
  }

  func count(_ change: (inout SQLiteCounters) -> Void) { counted.withLock { change(&$0) } }

  func isExpired(_ metadata: StoredMetadata, at now: Timestamp) -> Bool {
    (metadata.expiration ?? configuration.expiration).deadline(from: metadata.responseTime) <= now
  }

  func retention(at now: Timestamp) -> EntryTable.RetentionDeadline {
    EntryTable.RetentionDeadline(small: Self.inMemoryBodyLimit, now: now, end: now + Self.retention)
  }

  // MARK: Changing

  /// Runs `work` in a transaction that also records pending uses and removes a few discarded entries.
  func change<Value: Sendable>(
    _ work: @escaping @Sendable (Database, DatabaseFile.Opening) throws -> Value
  ) async throws(CacheError) -> Value {
    let (value, isMore) = try await file.write { [self] database, opening in
      let noted = uses.withLock { uses in
        defer { uses = [:] }
        return uses
      }
      for (place, time) in noted where place.isIn(opening) { try EntryTable.use(database, place.entry, at: time) }
      let value = try work(database, opening)
      return (value, try collect(database, opening, entries: 8, pieces: 64))
    }
    if isMore { startCollecting() }
    return value
  }

  /// Runs `work`, which stores this many bytes, in a transaction.
  ///
  /// - Throws: ``CacheError/Code/overloaded`` immediately if too many stores are waiting.
  func store<Value: Sendable>(
    bytes: Int, _ work: @escaping @Sendable (Database, DatabaseFile.Opening) throws -> Value
  ) async throws(CacheError) -> Value {
    guard backlog.enter(bytes) else { throw overload }
    defer { backlog.leave(bytes) }
    return try await change(work)
  }

  /// The error of a refused store. The code that throws it also counts it.
  var overload: CacheError { CacheError(.overloaded, reason: "too many stores are waiting", path: file.path) }

  /// Notes a use, which the next change records. If nothing can be written, the notes are discarded.
  func use(_ place: EntryLeases.EntryIdentity, at now: Timestamp) {
    let isFull = uses.withLock { uses in
      uses.updateValue(now, forKey: place) == nil && uses.count.isMultiple(of: 4_096)
    }
    guard isFull else { return }
    Task {
      do {
        try await change { _, _ in }
      } catch {
        uses.withLock { $0 = [:] }
      }
    }
  }

  // MARK: Cleanup

  /// Removes the bytes of entries that lookups cannot find and no reader needs.
  ///
  /// - Returns: Whether there are more.
  private func collect(_ database: Database, _ opening: DatabaseFile.Opening, entries: Int, pieces: Int64) throws -> Bool {
    let pinned = leases.entries(in: opening)
    let loose = try EntryTable.collectable(database, at: now, limit: pinned.count + entries + 1).filter { !pinned.contains($0) }
    for entry in loose.prefix(entries) {
      guard try ChunkTable.remove(database, entry, limit: pieces) else { return true }
      try EntryTable.delete(database, entry)
    }
    return loose.count > entries
  }

  /// Removes such bytes in the background, in small steps that let other writers in between.
  func startCollecting() {
    let starts = isCollecting.withLock { isCollecting in
      defer { isCollecting = true }
      return !isCollecting
    }
    guard starts else { return }
    Task {
      while (try? await file.write { [self] in try collectAndShrink($0, $1) }) == true {}
      isCollecting.withLock { $0 = false }
    }
  }

  /// Removes such bytes, and shrinks the file after the last step.
  private func collectAndShrink(_ database: Database, _ opening: DatabaseFile.Opening) throws -> Bool {
    if try collect(database, opening, entries: 256, pieces: 256) { return true }
    // A failure to shrink the file must not undo the removals.
    try? Self.shrinkFile(database)
    return false
  }

  private static func shrinkFile(_ database: Database) throws {
    let free = try Int.fetchOne(database, sql: "PRAGMA freelist_count") ?? 0
    let pages = try Int.fetchOne(database, sql: "PRAGMA page_count") ?? 0
    guard free > 1_000, free > pages / 2 else { return }
    _ = try Row.fetchAll(database, sql: "PRAGMA incremental_vacuum(\(free))")
  }
}

extension SQLiteEngine {
  /// Throws if the metadata is too large or the entry alone would exceed the limit.
  func requireAllowedSize(_ key: CacheKey, _ metadata: StoredMetadata) throws(CacheError) {
    let payload = metadata.encoded()
    guard payload.count <= EntryTable.metadataLimit else {
      throw CacheError(.entryTooLarge, reason: "the metadata is larger than \(EntryTable.metadataLimit) bytes", path: file.path)
    }
    guard let limit = configuration.sizeLimit else { return }
    guard EntryTable.size(key, payload, metadata.bodyLength ?? 0) <= limit else {
      throw CacheError(.entryTooLarge, reason: "the entry is larger than \(limit) bytes", path: file.path)
    }
  }

  func updateMetadata(of key: CacheKey, to metadata: StoredMetadata, ifRevision revision: Revision) async throws(CacheError)
    -> Bool
  {
    let now = now
    let (isDone, evicted) = try await store(bytes: metadata.encoded().count) { [self] database, _ in
      guard case .entry(let row) = try EntryTable.find(database, key), row.metadata.revision == revision else {
        return (false, 0)
      }
      var metadata = metadata
      metadata.revision = revision
      metadata.bodyLength = row.length
      try requireAllowedSize(key, metadata)
      try EntryTable.updateMetadata(database, row, metadata, used: now)
      guard let limit = configuration.sizeLimit else { return (true, 0) }
      return (true, try EntryTable.shrink(database, to: limit, sparing: row.id, retention(at: now)))
    }
    if evicted > 0 { count { $0.evictions[.size, default: 0] += evicted } }
    return isDone
  }

  func remove(_ key: CacheKey, ifRevision revision: Revision?) async throws(CacheError) {
    try await change { [self] database, _ in
      if let revision {
        guard case .entry(let row) = try EntryTable.find(database, key), row.metadata.revision == revision else { return }
      }
      try EntryTable.discard(database, key, retention(at: now))
    }
  }

  func removeAll() async throws(CacheError) {
    try await change { [self] database, _ in try EntryTable.discardAll(database, retention(at: now)) }
  }

  func trim(to size: Int64) async throws(CacheError) -> Int {
    let removed = try await change { [self] database, _ in
      try EntryTable.shrink(database, to: max(0, size), sparing: nil, retention(at: now))
    }
    if removed > 0 { count { $0.evictions[.trimmed, default: 0] += removed } }
    return removed
  }

  func removeExpired() async throws(CacheError) -> Int {
    let now = now
    let removed = try await change { [self] database, _ in
      var expired: [Int64] = []
      try EntryTable.each(database) { found in
        if case .entry(let row) = found, isExpired(row.metadata, at: now) { expired.append(row.id) }
      }
      return try expired.count { try EntryTable.discard(database, $0, retention(at: now)) }
    }
    if removed > 0 { count { $0.evictions[.expired, default: 0] += removed } }
    return removed
  }

  func entries(
    where isWanted: @escaping @Sendable (CacheKey, StoredMetadata) -> Bool
  ) async throws(CacheError) -> [ListedEntry] {
    let now = now
    return try await file.read { [self] database, _ in
      var listed: [ListedEntry] = []
      try EntryTable.each(database) { found in
        guard case .entry(let row) = found, !isExpired(row.metadata, at: now), isWanted(row.key, row.metadata) else { return }
        listed.append(ListedEntry(key: row.key, metadata: row.metadata))
      }
      return listed
    }
  }

  /// Returns the transformed values of a resource, without their bodies.
  func transforms(of resource: String) async throws(CacheError) -> [ListedEntry] {
    let now = now
    return try await file.read { [self] database, _ in
      try EntryTable.transforms(database, of: resource).compactMap { found in
        guard case .entry(let row) = found, !isExpired(row.metadata, at: now) else { return nil }
        return ListedEntry(key: row.key, metadata: row.metadata)
      }
    }
  }

  func close() async {
    await clearing.withLock { $0.task }?.value
    // An empty change writes down the latest uses, which determine later evictions.
    try? await change { _, _ in }
    await file.close()
  }
}
#endif
