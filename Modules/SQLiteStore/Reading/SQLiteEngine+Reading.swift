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
  private struct Look: Sendable {
    var entries: [StoredEntry] = []
    var cleanup: CleanupQueue
  }

  func entry(for key: CacheKey, range: Range<Int64>?) async throws(CacheError) -> StoredEntry? {
    try await look { database in
      [try EntryTable.find(database, key)]
    } range: {
      range
    }.first
  }

  func variants(of resource: String) async throws(CacheError) -> [StoredEntry] {
    try await look { database in
      try EntryTable.variants(database, of: resource)
    } range: {
      nil
    }
  }

  func values(for keys: [CacheKey]) async throws(CacheError) -> [CacheKey: StoredEntry] {
    let keys = Set(keys)
    guard !keys.isEmpty else { return [:] }
    let entries = try await look(asked: keys.count) { database in
      try keys.map { try EntryTable.find(database, $0) }
    } range: {
      nil
    }
    return Dictionary(entries.map { ($0.key, $0) }, uniquingKeysWith: { first, _ in first })
  }

  /// - Parameter asked: The number of keys that are looked up one by one. With `nil`, any result counts as one hit and none as
  ///   one miss.
  private func look(
    asked: Int? = nil, _ find: @escaping @Sendable (Database) throws -> [EntryTable.Found],
    range: @escaping @Sendable () -> Range<Int64>?
  ) async throws(CacheError) -> [StoredEntry] {
    let now = now
    let look = try await file.read { [self] database, opening in
      var look = Look(cleanup: CleanupQueue(in: opening))
      for found in try find(database) {
        switch found {
        case .nothing: continue
        case .damaged(let id): look.cleanup.damaged.insert(id)
        case .entry(let row) where isExpired(row.metadata, at: now): look.cleanup.expired.insert(row.id)
        case .entry(let row):
          guard let entry = try entry(row, range(), database, opening) else {
            look.cleanup.damaged.insert(row.id)
            continue
          }
          use(EntryLeases.Place(opening, row.id), at: now)
          look.entries.append(entry)
        }
      }
      return look
    }
    let hits = asked == nil ? min(look.entries.count, 1) : look.entries.count
    count { counters in
      counters.hits += hits
      counters.misses += (asked ?? 1) - hits
      counters.damaged += look.cleanup.damaged.count
    }
    clearAway(look.cleanup)
    return look.entries
  }

  /// Returns `nil` if the body is damaged.
  private func entry(
    _ row: EntryRow, _ range: Range<Int64>?, _ database: Database, _ opening: DatabaseFile.Opening
  ) throws -> StoredEntry? {
    let wanted = (range ?? 0..<row.length).clamped(to: 0..<row.length)
    guard row.length <= Self.atHand else {
      let body = SQLiteBody(row, wanted, leases.lease(opening, row.id), self)
      return StoredEntry(
        key: row.key, metadata: row.metadata, body: ResourceBody(length: wanted.upperBound - wanted.lowerBound, source: body))
    }
    let whole = try ChunkTable.read(database, row.id, row.metadata.revision, 0..<row.length, of: row.length)
    return whole.map { whole in
      let bytes = range == nil ? whole : whole.subdata(in: Int(wanted.lowerBound)..<Int(wanted.upperBound))
      return StoredEntry(key: row.key, metadata: row.metadata, body: ResourceBody(bytes))
    }
  }

  /// Removes an entry whose body was found damaged while it streamed.
  func discard(damaged id: Int64, in opening: DatabaseFile.Opening) async {
    count { $0.damaged += 1 }
    var cleanup = CleanupQueue(in: opening)
    cleanup.damaged = [id]
    await discard(cleanup)
  }
}
#endif
