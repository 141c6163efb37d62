#if SQLite
internal import CacheCore
internal import GRDB

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// What a cache, its writers and its bodies share.
final class SQLiteEngine: Sendable {
  /// Bytes of a body that comes along with its entry.
  static let atHand: Int64 = 131_072
  /// How long a larger body stays for readers in other processes when its entry is replaced or removed.
  static let retention = Duration.seconds(60)
  /// After so long without a word its writer's process is taken for dead.
  static let patience = Duration.seconds(600)

  let file: DatabaseFile
  let configuration: SQLiteCache.Configuration
  let leases = EntryLeases()
  let backlog: WriteBacklog
  private let counted = Lock(SQLiteCounters())
  private let uses = Lock<[EntryLeases.Place: Timestamp]>([:])
  let isCollecting = Lock(false)
  /// What looks found to clear away, and who does it.
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
    EntryTable.RetentionDeadline(small: Self.atHand, now: now, end: now + Self.retention)
  }

  // MARK: Changing

  /// Runs `work` in a transaction, with the uses that reading left to be noted, and a little of what is to be cleared away.
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

  /// Runs `work`, which stores something that holds so many bytes, in a transaction.
  ///
  /// - Throws: ``CacheError/Code/overloaded``, at once, when too much waits to be stored already.
  func store<Value: Sendable>(
    bytes: Int, _ work: @escaping @Sendable (Database, DatabaseFile.Opening) throws -> Value
  ) async throws(CacheError) -> Value {
    guard backlog.enter(bytes) else { throw overload }
    defer { backlog.leave(bytes) }
    return try await change(work)
  }

  /// What is refused is counted by who throws it.
  var overload: CacheError { CacheError(.overloaded, reason: "too much waits to be stored already", path: file.path) }

  /// Notes a use, which the next change writes down; where nothing can be written they are let go of.
  func use(_ place: EntryLeases.Place, at now: Timestamp) {
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

  // MARK: Clearing away

  /// Removes bytes that nobody can find and nobody reads.
  ///
  /// - Returns: whether there are more.
  private func collect(_ database: Database, _ opening: DatabaseFile.Opening, entries: Int, pieces: Int64) throws -> Bool {
    let pinned = leases.entries(in: opening)
    let loose = try EntryTable.collectable(database, at: now, limit: pinned.count + entries + 1).filter { !pinned.contains($0) }
    for entry in loose.prefix(entries) {
      guard try ChunkTable.remove(database, entry, limit: pieces) else { return true }
      try EntryTable.delete(database, entry)
    }
    return loose.count > entries
  }

  /// Goes on in the background, in small steps that let others write in between.
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

  /// Removes what can be collected, and shrinks the file after the last step.
  private func collectAndShrink(_ database: Database, _ opening: DatabaseFile.Opening) throws -> Bool {
    if try collect(database, opening, entries: 256, pieces: 256) { return true }
    // A file that does not shrink is no reason to undo the removals.
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
#endif
