#if SQLite
internal import CacheCore
internal import GRDB
internal import HTTPTypes

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// Writes one entry. A large body goes into the database as it arrives, where lookups do not find it before the commit.
final class SQLiteEntryWriter: EntryWriter {
  private enum Phase {
    case idle
    /// A write or a commit is in progress. It does the cleanup if the writer is aborted meanwhile.
    case busy(isAborted: Bool)
    case committed
    case failed(CacheError)
  }

  private let key: CacheKey
  private let metadata: StoredMetadata
  private let engine: SQLiteEngine
  private let spool = SQLiteSpool()
  private let phase = Lock(Phase.idle)

  init(_ key: CacheKey, _ metadata: StoredMetadata, _ engine: SQLiteEngine) throws(CacheError) {
    guard key.resource.utf8.count + key.variant.utf8.count + key.transform.utf8.count <= EntryTable.keyLimit else {
      throw CacheError(.entryTooLarge, reason: "the key is larger than \(EntryTable.keyLimit) bytes", path: engine.file.path)
    }
    (self.key, self.metadata, self.engine) = (key, metadata, engine)
    try requireAllowedSize(metadata.bodyLength ?? 0)
  }

  deinit { abort() }

  private func requireAllowedSize(_ length: Int64) throws(CacheError) {
    let limit = engine.configuration.bodyLimit
    guard length <= limit else {
      throw CacheError(.entryTooLarge, reason: "the body is larger than \(limit) bytes", path: engine.file.path)
    }
  }

  // MARK: Writing

  func write(_ chunk: Data) async throws(CacheError) {
    try enter()
    do throws(CacheError) {
      try requireAllowedSize(spool.length + Int64(chunk.count))
      var rest = chunk
      while !rest.isEmpty {
        spool.append(Data(rest.prefix(SQLiteSpool.pendingLimit)))
        rest = rest.dropFirst(SQLiteSpool.pendingLimit)
        if spool.pending.count >= SQLiteSpool.pendingLimit { try await flush() }
      }
    } catch {
      fail(error)
      throw error
    }
    try leave()
  }

  private func enter() throws(CacheError) {
    try phase.withLock { phase throws(CacheError) in
      switch phase {
      case .idle: phase = .busy(isAborted: false)
      case .busy: throw CacheError(.misuse, reason: "a writer was used by two tasks at once")
      case .committed: throw CacheError(.misuse, reason: "the entry is already committed")
      case .failed(let error): throw error
      }
    }
  }

  private func leave() throws(CacheError) {
    let isAborted = phase.withLock { phase in
      if case .busy(isAborted: true) = phase { return true }
      phase = .idle
      return false
    }
    guard isAborted else { return }
    fail(Self.aborted)
    throw Self.aborted
  }

  private static let aborted = CacheError(.truncatedBody, reason: "the writer of the entry was aborted")

  private func flush() async throws(CacheError) {
    let pending = spool.pending
    let count = pending.count / ChunkTable.size * ChunkTable.size
    let (lease, flushed) = spool.flushed
    let reserved = try await engine.store(bytes: pending.count) { [engine, metadata] database, opening in
      let entry = try Self.entry(lease, database, opening, engine)
      _ = try ChunkTable.insertAll(
        database, pending.prefix(count), entry.entry, metadata.revision, from: flushed / Int64(ChunkTable.size))
      return entry
    }
    spool.flush(count, reserved)
  }

  /// Returns the entry that the body is written to. The first write creates it, and later ones extend its deadline.
  private static func entry(
    _ lease: EntryLeases.EntryLease?, _ database: Database, _ opening: DatabaseFile.Opening, _ engine: SQLiteEngine
  ) throws -> EntryLeases.EntryLease {
    let until = engine.now + SQLiteEngine.writeTimeout
    guard let lease else { return engine.leases.lease(opening, try EntryTable.reserve(database, until: until)) }
    guard lease.opening === opening, try EntryTable.extend(database, lease.entry, until: until) else {
      throw CacheError(
        .truncatedBody, reason: "the partial entry was removed from the database", path: engine.file.path)
    }
    return lease
  }

  // MARK: Reading

  func reader() throws(CacheError) -> ResourceBody {
    if case .failed(let error) = phase.withLock({ $0 }) { throw error }
    return ResourceBody(length: metadata.bodyLength, source: SQLiteSpoolBody(spool, engine, metadata.revision))
  }

  // MARK: The end

  func commit(trailers: HTTPFields?) async throws(CacheError) -> StoredMetadata {
    try enter()
    do throws(CacheError) {
      let stored = try await finish(trailers)
      phase.withLock { $0 = .committed }
      spool.finish(.committed(stored.trailers))
      return stored
    } catch {
      fail(error)
      throw error
    }
  }

  private func finish(_ trailers: HTTPFields?) async throws(CacheError) -> StoredMetadata {
    // An abort takes effect only before this point.
    if case .busy(isAborted: true) = phase.withLock({ $0 }) { throw Self.aborted }
    var stored = metadata
    stored.bodyLength = spool.length
    stored.trailers = trailers ?? metadata.trailers
    try engine.requireAllowedSize(key, stored)
    let pending = spool.pending
    let (lease, flushed) = spool.flushed
    let evicted = try await engine.store(bytes: pending.count) { [engine, key, stored] database, opening in
      let now = engine.now
      let entry = try Self.entry(lease, database, opening, engine).entry
      _ = try ChunkTable.insertAll(database, pending, entry, stored.revision, from: flushed / Int64(ChunkTable.size))
      try EntryTable.discard(database, key, engine.retention(at: now))
      try EntryTable.publish(database, entry, key, stored, used: now)
      guard let limit = engine.configuration.sizeLimit else { return 0 }
      return try EntryTable.shrink(database, to: limit, sparing: entry, engine.retention(at: now))
    }
    engine.count { counters in
      counters.writes += 1
      if evicted > 0 { counters.evictions[.size, default: 0] += evicted }
    }
    return stored
  }

  func abort() {
    let isNew = phase.withLock { phase in
      switch phase {
      case .idle: return true
      case .busy:
        phase = .busy(isAborted: true)
        return false
      case .committed, .failed: return false
      }
    }
    if isNew { fail(Self.aborted) }
  }

  /// Ends the writer: readers throw `error`, and the partial entry is removed.
  private func fail(_ error: CacheError) {
    phase.withLock { $0 = .failed(error) }
    spool.finish(.failed(error))
    switch error.code {
    case Self.aborted.code: break
    case .overloaded: engine.count { $0.refusedWrites += 1 }
    default: engine.count { $0.failedWrites += 1 }
    }
    guard let lease = spool.flushed.lease else { return }
    Task { [engine] in
      try? await engine.change { database, opening in
        guard opening === lease.opening else { return }
        // If this fails, the partial entry is removed after its deadline.
        _ = try EntryTable.extend(database, lease.entry, until: engine.now)
      }
    }
  }
}
#endif
