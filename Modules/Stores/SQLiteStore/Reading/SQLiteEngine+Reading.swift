#if SQLite
internal import CacheCore
internal import GRDB

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

extension SQLiteEngine {
  /// The result of a lookup, with the entries to remove.
  private struct LookupBatch: Sendable {
    var entries: [StoredEntry] = []
    var cleanup: CleanupQueue
  }

  func entry(for key: CacheKey, range: Range<Int64>?) async throws(CacheError) -> StoredEntry? {
    try await lookUp { database in
      [try EntryTable.find(database, key)]
    } range: {
      range
    }.first
  }

  func variants(of resource: String) async throws(CacheError) -> [StoredEntry] {
    try await lookUp { database in
      try EntryTable.variants(database, of: resource)
    } range: {
      nil
    }
  }

  func values(for keys: [CacheKey]) async throws(CacheError) -> [CacheKey: StoredEntry] {
    let keys = Set(keys)
    guard !keys.isEmpty else { return [:] }
    let entries = try await lookUp(keyCount: keys.count) { database in
      try keys.map { try EntryTable.find(database, $0) }
    } range: {
      nil
    }
    return Dictionary(entries.map { ($0.key, $0) }, uniquingKeysWith: { first, _ in first })
  }

  /// - Parameter keyCount: The number of keys that are looked up one by one. With `nil`, any result counts as one hit and none as
  ///   one miss.
  private func lookUp(
    keyCount: Int? = nil, _ find: @escaping @Sendable (Database) throws -> [EntryTable.Found],
    range: @escaping @Sendable () -> Range<Int64>?
  ) async throws(CacheError) -> [StoredEntry] {
    let now = now
    let batch = try await file.read { [self] database, opening in
      var batch = LookupBatch(cleanup: CleanupQueue(in: opening))
      for found in try find(database) {
        switch found {
        case .nothing: continue
        case .damaged(let id): batch.cleanup.damaged.insert(id)
        case .entry(let row) where isExpired(row.metadata, at: now): batch.cleanup.expired.insert(row.id)
        case .entry(let row):
          guard let entry = try entry(row, range(), database, opening) else {
            batch.cleanup.damaged.insert(row.id)
            continue
          }
          use(EntryLeases.EntryIdentity(opening, row.id), at: now)
          batch.entries.append(entry)
        }
      }
      return batch
    }
    let hits = keyCount == nil ? min(batch.entries.count, 1) : batch.entries.count
    count { counters in
      counters.hits += hits
      counters.misses += (keyCount ?? 1) - hits
      counters.damaged += batch.cleanup.damaged.count
    }
    enqueueCleanup(batch.cleanup)
    return batch.entries
  }

  /// Returns `nil` if the body is damaged.
  private func entry(
    _ row: EntryRow, _ range: Range<Int64>?, _ database: Database, _ opening: DatabaseFile.Opening
  ) throws -> StoredEntry? {
    let wanted = (range ?? 0..<row.length).clamped(to: 0..<row.length)
    guard row.length <= Self.inMemoryBodyLimit else {
      let lease = leases.lease(opening, row.id)
      let body = ChunkedBody(wanted, trailers: row.metadata.trailers) { start throws(CacheError) in
        [try await self.read(start..<min(wanted.upperBound, (start / Self.pull + 1) * Self.pull), of: row, lease)]
      }
      return StoredEntry(
        key: row.key, metadata: row.metadata, body: ResourceBody(length: wanted.upperBound - wanted.lowerBound, source: body))
    }
    let whole = try ChunkTable.read(database, row.id, row.metadata.revision, 0..<row.length, of: row.length)
    return whole.map { whole in
      let bytes = range == nil ? whole : whole.subdata(in: Int(wanted.lowerBound)..<Int(wanted.upperBound))
      return StoredEntry(key: row.key, metadata: row.metadata, body: ResourceBody(bytes))
    }
  }

  /// The number of bytes that one read of a large body returns.
  private static let pull = Int64(4 * ChunkRow.size)

  private func read(_ range: Range<Int64>, of row: EntryRow, _ lease: EntryLeases.EntryLease) async throws(CacheError) -> Data {
    let bytes = try await file.read { database, opening in
      // A database that was recreated numbers its entries from one again.
      guard opening === lease.opening else { return Data?.none }
      return try ChunkTable.read(database, row.id, row.metadata.revision, range, of: row.length)
    }
    if let bytes { return bytes }
    await discard(damaged: row.id, in: lease.opening)
    throw CacheError(.damagedEntry, reason: "the stored body is damaged or was removed", path: file.path)
  }

  /// Removes an entry whose body was found damaged while it streamed.
  func discard(damaged id: Int64, in opening: DatabaseFile.Opening) async {
    count { $0.damaged += 1 }
    var cleanup = CleanupQueue(in: opening)
    cleanup.damaged = [id]
    await discard(cleanup)
  }
}

/// The entries whose bytes this process still reads or writes. They stay even if the entry is replaced or removed here.
final class EntryLeases: Sendable {
  struct EntryIdentity: Hashable, Sendable {
    private let opening: ObjectIdentifier
    let entry: Int64

    init(_ opening: DatabaseFile.Opening, _ entry: Int64) {
      self.opening = ObjectIdentifier(opening)
      self.entry = entry
    }

    func isIn(_ opening: DatabaseFile.Opening) -> Bool { self.opening == ObjectIdentifier(opening) }
  }

  /// A lease that protects an entry's bytes for its lifetime.
  final class EntryLease: Sendable {
    let opening: DatabaseFile.Opening
    let entry: Int64
    private let leases: EntryLeases

    fileprivate init(_ opening: DatabaseFile.Opening, _ entry: Int64, _ leases: EntryLeases) {
      (self.opening, self.entry, self.leases) = (opening, entry, leases)
      leases.counts.withLock { $0[EntryIdentity(opening, entry), default: 0] += 1 }
    }

    deinit {
      leases.counts.withLock { counts in
        let identity = EntryIdentity(opening, entry)
        let left = (counts[identity] ?? 1) - 1
        counts[identity] = left > 0 ? left : nil
      }
    }
  }

  private let counts = Lock<[EntryIdentity: Int]>([:])

  func lease(_ opening: DatabaseFile.Opening, _ entry: Int64) -> EntryLease { EntryLease(opening, entry, self) }

  func entries(in opening: DatabaseFile.Opening) -> Set<Int64> {
    counts.withLock { counts in Set(counts.keys.filter { $0.isIn(opening) }.map(\.entry)) }
  }
}

/// The entries of one database that lookups found to be removed.
struct CleanupQueue: Sendable {
  let opening: DatabaseFile.Opening
  var expired: Set<Int64> = []
  var damaged: Set<Int64> = []

  init(in opening: DatabaseFile.Opening) { self.opening = opening }

  var isEmpty: Bool { expired.isEmpty && damaged.isEmpty }

  /// Returns the union with another queue. Entries of a replaced database need no removal.
  func joined(_ others: CleanupQueue) -> CleanupQueue {
    guard opening === others.opening else { return others }
    var all = self
    all.expired.formUnion(others.expired)
    all.damaged.formUnion(others.damaged)
    return all
  }
}

/// The removal of entries that lookups found expired or damaged. It runs separately, so that reads do not wait for writes.
extension SQLiteEngine {
  /// Removes the entries in one change at a time. While another process writes, the queue grows to at most the number of stored
  /// entries.
  func enqueueCleanup(_ new: CleanupQueue) {
    guard !new.isEmpty else { return }
    clearing.withLock { clearing in
      clearing.cleanup = clearing.cleanup?.joined(new) ?? new
      if clearing.task == nil { clearing.task = Task { [self] in await runCleanup() } }
    }
  }

  private func runCleanup() async {
    while let cleanup = nextCleanup() { await discard(cleanup) }
  }

  private func nextCleanup() -> CleanupQueue? {
    clearing.withLock { clearing in
      if clearing.cleanup == nil { clearing.task = nil }
      defer { clearing.cleanup = nil }
      return clearing.cleanup
    }
  }

  /// Removes the entries. If that fails, they stay misses, and the next lookup tries again.
  func discard(_ cleanup: CleanupQueue) async {
    let count = try? await change { [self] database, current in
      guard current === cleanup.opening else { return 0 }
      let now = now
      for id in cleanup.damaged { try EntryTable.discard(database, id, retention(at: now)) }
      return try cleanup.expired.count { id in
        // A metadata update may have extended its life since.
        guard case .entry(let row) = try EntryTable.find(database, id), isExpired(row.metadata, at: now) else { return false }
        return try EntryTable.discard(database, id, retention(at: now))
      }
    }
    if let count, count > 0 { self.count { $0.evictions[.expired, default: 0] += count } }
  }
}
#endif
