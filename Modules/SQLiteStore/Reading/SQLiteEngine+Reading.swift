#if SQLite
internal import CacheCore
internal import GRDB

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

extension SQLiteEngine {
  /// What a look finds, and what it finds to clear away.
  private struct Look: Sendable {
    var entries: [StoredEntry] = []
    var expired: [Int64] = []
    var damaged: [Int64] = []
    let opening: DatabaseFile.Opening
  }

  func open(_ key: CacheKey, _ range: Range<Int64>?) async throws(CacheError) -> StoredEntry? {
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

  /// - Parameter asked: how many keys are asked for one by one; nil: what is found counts as one hit, nothing as one miss.
  private func look(
    asked: Int? = nil, _ find: @escaping @Sendable (Database) throws -> [EntryTable.Found],
    range: @escaping @Sendable () -> Range<Int64>?
  ) async throws(CacheError) -> [StoredEntry] {
    let now = now
    let look = try await file.read { [self] database, opening in
      var look = Look(opening: opening)
      for found in try find(database) {
        switch found {
        case .nothing: continue
        case .damaged(let id): look.damaged.append(id)
        case .entry(let row) where isExpired(row.metadata, at: now): look.expired.append(row.id)
        case .entry(let row):
          guard let entry = try entry(row, range(), database, opening) else {
            look.damaged.append(row.id)
            continue
          }
          use(Pins.Place(opening, row.id), at: now)
          look.entries.append(entry)
        }
      }
      return look
    }
    let hits = asked == nil ? min(look.entries.count, 1) : look.entries.count
    count { counters in
      counters.hits += hits
      counters.misses += (asked ?? 1) - hits
    }
    await discard(expired: look.expired, in: look.opening)
    await discard(damaged: look.damaged, in: look.opening)
    return look.entries
  }

  /// Nil: the body is damaged.
  private func entry(
    _ row: EntryRow, _ range: Range<Int64>?, _ database: Database, _ opening: DatabaseFile.Opening
  ) throws -> StoredEntry? {
    let wanted = (range ?? 0..<row.length).clamped(to: 0..<row.length)
    guard row.length <= Self.atHand else {
      let body = SQLiteBody(row, wanted, pins.pin(opening, row.id), self)
      return StoredEntry(
        key: row.key, metadata: row.metadata, body: Body(length: wanted.upperBound - wanted.lowerBound, source: body))
    }
    let whole = try ChunkTable.read(database, row.id, row.metadata.revision, 0..<row.length, of: row.length)
    return whole.map { whole in
      let bytes = range == nil ? whole : whole.subdata(in: Int(wanted.lowerBound)..<Int(wanted.upperBound))
      return StoredEntry(key: row.key, metadata: row.metadata, body: Body(bytes))
    }
  }

  /// A removal that fails leaves a miss behind, and is tried again at the next look.
  private func discard(expired: [Int64], in opening: DatabaseFile.Opening) async {
    guard !expired.isEmpty else { return }
    let count = try? await change { [self] database, current in
      guard current === opening else { return 0 }
      let now = now
      return try expired.count { id in
        // It may have been freshened since.
        guard case .entry(let row) = try EntryTable.find(database, id), isExpired(row.metadata, at: now) else { return false }
        return try EntryTable.discard(database, id, stay(at: now))
      }
    }
    if let count, count > 0 { self.count { $0.evictions[.expired, default: 0] += count } }
  }

  func discard(damaged: [Int64], in opening: DatabaseFile.Opening) async {
    guard !damaged.isEmpty else { return }
    count { $0.damaged += damaged.count }
    _ = try? await change { [self] database, current in
      guard current === opening else { return }
      for id in damaged { try EntryTable.discard(database, id, stay(at: now)) }
    }
  }
}
#endif
