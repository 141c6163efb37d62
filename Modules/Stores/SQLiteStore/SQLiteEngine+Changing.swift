#if SQLite
internal import CacheCore
internal import GRDB

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

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
