#if SQLite
internal import CacheCore
internal import GRDB

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
