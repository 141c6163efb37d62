#if SQLite
internal import CacheCore
internal import GRDB

/// Clearing away what looks found, behind their backs: who reads does not wait for who writes.
extension SQLiteEngine {
  /// One change at a time, for all that was found meanwhile: while somebody else writes, what waits is no more than what is
  /// stored.
  func clearAway(_ new: CleanupQueue) {
    guard !new.isEmpty else { return }
    clearing.withLock { clearing in
      clearing.cleanup = clearing.cleanup?.joined(new) ?? new
      if clearing.task == nil { clearing.task = Task { [self] in await clearAway() } }
    }
  }

  private func clearAway() async {
    while let cleanup = nextFinds() { await discard(cleanup) }
  }

  private func nextFinds() -> CleanupQueue? {
    clearing.withLock { clearing in
      if clearing.cleanup == nil { clearing.task = nil }
      defer { clearing.cleanup = nil }
      return clearing.cleanup
    }
  }

  /// A removal that fails leaves a miss behind, and is tried again at the next look.
  func discard(_ cleanup: CleanupQueue) async {
    let count = try? await change { [self] database, current in
      guard current === cleanup.opening else { return 0 }
      let now = now
      for id in cleanup.damaged { try EntryTable.discard(database, id, retention(at: now)) }
      return try cleanup.expired.count { id in
        // It may have been freshened since.
        guard case .entry(let row) = try EntryTable.find(database, id), isExpired(row.metadata, at: now) else { return false }
        return try EntryTable.discard(database, id, retention(at: now))
      }
    }
    if let count, count > 0 { self.count { $0.evictions[.expired, default: 0] += count } }
  }
}
#endif
