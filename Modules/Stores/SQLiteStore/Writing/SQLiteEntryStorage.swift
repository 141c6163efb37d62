#if SQLite
internal import CacheCore
internal import GRDB

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// The database's part of writing one entry.
struct SQLiteEntryStorage: SpoolStorage {
  static let chunkSize = ChunkRow.size

  let key: CacheKey
  let revision: Revision
  let engine: SQLiteEngine

  /// - Throws: `CacheError.Code.entryTooLarge` if the key is too large.
  init(_ key: CacheKey, _ revision: Revision, _ engine: SQLiteEngine) throws(CacheError) {
    guard key.resource.utf8.count + key.variant.utf8.count + key.transform.utf8.count <= EntryTable.keyLimit else {
      throw CacheError(.entryTooLarge, reason: "the key is larger than \(EntryTable.keyLimit) bytes", path: engine.file.path)
    }
    (self.key, self.revision, self.engine) = (key, revision, engine)
  }

  func requireAllowedSize(_ length: Int64) throws(CacheError) {
    let limit = engine.configuration.bodyLimit
    guard length <= limit else {
      throw CacheError(.entryTooLarge, reason: "the body is larger than \(limit) bytes", path: engine.file.path)
    }
  }

  func append(
    _ bytes: Data, at offset: Int64, to lease: EntryLeases.EntryLease?
  ) async throws(CacheError) -> EntryLeases.EntryLease {
    try await engine.store(bytes: bytes.count) { [self] database, opening in
      let entry = try reserve(lease, database, opening)
      _ = try ChunkTable.insertAll(database, bytes, entry.entry, revision, from: offset / Int64(ChunkRow.size))
      return entry
    }
  }

  /// Returns the entry that the body is written to. The first write creates it, and later ones extend its deadline.
  private func reserve(
    _ lease: EntryLeases.EntryLease?, _ database: Database, _ opening: DatabaseFile.Opening
  ) throws -> EntryLeases.EntryLease {
    let until = engine.now + SQLiteEngine.writeTimeout
    guard let lease else { return engine.leases.lease(opening, try EntryTable.reserve(database, until: until)) }
    guard lease.opening === opening, try EntryTable.extend(database, lease.entry, until: until) else {
      throw CacheError(
        .truncatedBody, reason: "the partial entry was removed from the database", path: engine.file.path)
    }
    return lease
  }

  func commit(
    _ metadata: StoredMetadata, tail: Data, at offset: Int64, in lease: EntryLeases.EntryLease?
  ) async throws(CacheError) {
    try engine.requireAllowedSize(key, metadata)
    let evicted = try await engine.store(bytes: tail.count) { [self] database, opening in
      let now = engine.now
      let entry = try reserve(lease, database, opening).entry
      _ = try ChunkTable.insertAll(database, tail, entry, metadata.revision, from: offset / Int64(ChunkRow.size))
      try EntryTable.discard(database, key, engine.retention(at: now))
      try EntryTable.publish(database, entry, key, metadata, used: now)
      guard let limit = engine.configuration.sizeLimit else { return 0 }
      return try EntryTable.shrink(database, to: limit, sparing: entry, engine.retention(at: now))
    }
    engine.count { counters in
      counters.writes += 1
      if evicted > 0 { counters.evictions[.size, default: 0] += evicted }
    }
  }

  func discard(_ lease: EntryLeases.EntryLease) {
    Task { [engine] in
      try? await engine.change { database, opening in
        guard opening === lease.opening else { return }
        // If this fails, the partial entry is removed after its deadline.
        _ = try EntryTable.extend(database, lease.entry, until: engine.now)
      }
    }
  }

  func note(_ error: CacheError) {
    if error.code == .overloaded { engine.count { $0.refusedWrites += 1 } } else { engine.count { $0.failedWrites += 1 } }
  }
}

/// The limit for pending stores, which bounds their memory on a slow disk.
final class WriteBacklog: Sendable {
  private let count: Int
  private let bytes: Int
  private let waiting = Lock((count: 0, bytes: 0))

  /// - Parameters:
  ///   - count: The maximum number of pending stores.
  ///   - bytes: The maximum total size of pending stores in bytes.
  init(count: Int, bytes: Int) { (self.count, self.bytes) = (count, bytes) }

  /// Whether a store of this many bytes may wait too. A single store of any size may.
  private func hasCapacity(for size: Int, beside waiting: (count: Int, bytes: Int)) -> Bool {
    waiting.count == 0 || waiting.count < count && waiting.bytes < bytes && size <= bytes - waiting.bytes
  }

  /// Whether another store may wait.
  var hasCapacity: Bool { hasCapacity(for: 0) }

  func hasCapacity(for size: Int) -> Bool { waiting.withLock { hasCapacity(for: size, beside: $0) } }

  /// - Returns: `false` if the store is refused. Otherwise ``leave(_:)`` must follow.
  func enter(_ size: Int) -> Bool {
    waiting.withLock { waiting in
      guard hasCapacity(for: size, beside: waiting) else { return false }
      waiting.count += 1
      waiting.bytes += size
      return true
    }
  }

  func leave(_ size: Int) {
    waiting.withLock { waiting in
      waiting.count -= 1
      waiting.bytes -= size
    }
  }
}
#endif
