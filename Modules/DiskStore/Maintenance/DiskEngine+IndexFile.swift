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
    let uptime = clock.uptime
    // Noted before the entries are copied. A later change withdraws the note, and then the file must not stay.
    indexFile.withLock { $0.writes(stamp, at: uptime) }
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
    let (count, uptime) = (index.known.count, clock.uptime)
    guard indexFile.withLock({ $0.endsWatch(at: uptime, entries: count) }) else { return false }
    executor.start(.maintenance) { [self] in saveIndex() }
    return true
  }
}

/// The state of the index file as this cache knows it, and the schedule for its next write.
struct IndexFileState: Sendable {
  /// The time without changes before the file is written.
  static let quiet = Duration.seconds(5)

  /// The stamp of the file, if this cache has read or written it and changed nothing since.
  private(set) var stamp: IndexFile.Stamp?
  /// The task that waits for a quiet period, if any.
  var watch: Task<Void, Never>?
  private var changes: UInt64 = 0
  /// The number of changes at the last check of the task.
  private var seen: UInt64 = 0
  /// The uptime of the last write.
  private var lastWrite: Duration?

  /// Returns the minimum time between two writes, which limits the long-term cost to 56 KB a second for any number of entries.
  private static func rest(entries: Int) -> Duration { .seconds(max(30, entries / 1000)) }

  /// Notes that the file matches the entries.
  mutating func holds(_ stamp: IndexFile.Stamp) { self.stamp = stamp }

  /// Notes that a matching file is about to be written.
  mutating func writes(_ stamp: IndexFile.Stamp, at uptime: Duration) { (self.stamp, lastWrite) = (stamp, uptime) }

  mutating func fails() { stamp = nil }

  /// Notes a change.
  ///
  /// - Returns: Whether a task should start to wait for a quiet period.
  mutating func change() -> Bool {
    stamp = nil
    changes &+= 1
    guard watch == nil else { return false }
    seen = changes
    return true
  }

  /// Whether nothing has changed since the last check and a write is due. If so, the waiting ends.
  mutating func endsWatch(at uptime: Duration, entries: Int) -> Bool {
    defer { seen = changes }
    guard seen == changes, lastWrite.map({ uptime - $0 >= Self.rest(entries: entries) }) ?? true else { return false }
    watch = nil
    return true
  }
}
