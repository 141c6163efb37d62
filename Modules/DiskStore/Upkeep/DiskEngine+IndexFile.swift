internal import CacheCore

/// The index beside the files, in the upkeep's lane.
extension DiskEngine {
  /// Takes the index from its file, if it is of the folder as it is; false when the files must be listed.
  func loadIndex() -> Bool {
    let (changes, uses) = (folder.foreignChanges, folder.foreignUses)
    index.beginList()
    // The counts are read after that: what we change from here on is noted, and what we changed before has raised them.
    guard let stamp = folder.indexStamp, let found = folder.readIndex(stamp) else {
      index.abandonList()
      return false
    }
    // Who has appended to an entry by then has removed the file before: the sizes are right.
    endList(found, since: changes, uses, seesUses: false)
    indexFile.withLock { $0.holds(stamp) }
    return true
  }

  /// Writes the index to its file, unless it is there, or small, or something is changing. Where others may have appended
  /// metadata to entries, and where it is not known what lies at a name, the files are listed first.
  func saveIndex() {
    guard (IndexFile.fewest...IndexFile.most).contains(index.known.count), let stamp = folder.indexStamp,
      indexFile.withLock({ $0.stamp }) != stamp, index.isCurrent(folder.foreignChanges)
    else {
      return
    }
    if index.hasDoubts || !index.knowsSizes(folder.foreignUses), (try? list()) == nil { return }
    // Noted before the entries are taken: who changes something from here on takes the note back, and the file must not stay.
    indexFile.withLock { $0.writes(stamp, at: clock.uptime) }
    let isWritten =
      index.snapshot(folder.foreignChanges).map { entries in
        folder.indexStamp == stamp && folder.writeIndex(IndexFile.encoded(entries, stamp))
      } ?? false
    guard isWritten else { return indexFile.withLock { $0.fails() } }
    if !index.knowsSizes(folder.foreignUses) { indexFile.withLock { $0.fails() } }
    if indexFile.withLock({ $0.stamp }) != stamp { folder.removeIndex() }
  }

  /// Before and after metadata is appended, which changes a size and no counter; and where a file is gone that the index had
  /// named. Another cache may have written one since we looked last.
  func forgetIndexFile() {
    noteChange()
    folder.removeIndex()
  }

  // MARK: While the store is open

  /// After something of ours was stored, freshened or removed. What the file says does not count any more; it is written again
  /// when nothing has changed for a while, for who leaves without closing.
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

  /// False: not yet.
  private func saveIndexIfQuiet() -> Bool {
    let count = index.known.count
    guard indexFile.withLock({ $0.endsWatch(at: clock.uptime, entries: count) }) else { return false }
    executor.start(.upkeep) { [self] in saveIndex() }
    return true
  }
}
