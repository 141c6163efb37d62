internal import CacheCore

/// The index file, in the maintenance lane.
extension DiskEngine {
  /// Loads the index from its file if it matches the folder's state. Returns `false` if the files must be listed.
  func loadIndex() -> Bool {
    let (changes, uses) = (folder.foreignChanges, folder.foreignUses)
    let entries = folder.openEntries()
    index.beginList()
    // The counters are read afterwards: later changes of this cache are noted, and earlier ones have incremented them.
    guard let stamp = folder.indexStamp, let found = folder.readIndex(stamp) else {
      index.abandonList()
      return false
    }
    // An append by another cache would have removed the file first, so the sizes are right.
    endList(found, in: entries, since: changes, uses, seesUses: false)
    indexFile.withLock { $0.holds(stamp) }
    return true
  }

  /// Writes the index file unless it is current, would be small, or a change is in progress. The files are listed first if other
  /// caches may have appended metadata or the state of a name is unknown.
  func saveIndex() {
    guard (IndexFile.fewest...IndexFile.most).contains(index.known.count), let stamp = folder.indexStamp,
      indexFile.withLock({ $0.stamp }) != stamp, index.isCurrent(folder.foreignChanges)
    else {
      return
    }
    if index.hasDoubts || !index.knowsSizes(folder.foreignUses), (try? list()) == nil { return }
    // Noted before the entries are copied. A later change withdraws the note, and then the file must not stay.
    indexFile.withLock { $0.writes(stamp, at: clock.uptime) }
    let isWritten =
      index.snapshot(folder.foreignChanges).map { entries in
        folder.indexStamp == stamp && folder.writeIndex(IndexFile.encoded(entries, stamp))
      } ?? false
    guard isWritten else { return indexFile.withLock { $0.fails() } }
    if !index.knowsSizes(folder.foreignUses) { indexFile.withLock { $0.fails() } }
    if indexFile.withLock({ $0.stamp }) != stamp { folder.removeIndex() }
  }

  /// Removes the index file before and after an append, which changes a size but no counter, and when an indexed file is missing.
  /// Another cache may have written the file since the last check.
  func forgetIndexFile() {
    noteChange()
    folder.removeIndex()
  }

  // MARK: While the store is open

  /// Notes a change by this cache: the index file is outdated. It is written again after a quiet period, for stores that are
  /// never closed.
  func noteChange() {
    let isWorthIt = index.known.count >= IndexFile.fewest
    indexFile.withLock { state in
      if state.change(), isWorthIt { state.watch = watch() }
    }
  }

  private func watch() -> Task<Void, Never> {
    Task(priority: .utility) { [weak self, clock] in
      while (try? await clock.sleep(for: IndexFileState.quiet)) != nil, self?.saveIndexIfQuiet() == false {}
    }
  }

  /// Returns `false` if it is too early.
  private func saveIndexIfQuiet() -> Bool {
    let count = index.known.count
    guard indexFile.withLock({ $0.endsWatch(at: clock.uptime, entries: count) }) else { return false }
    executor.start(.maintenance) { [self] in saveIndex() }
    return true
  }
}
