internal import CacheCore
internal import Dispatch

/// The maintenance of the whole folder, in its own lane.
///
/// Single entries are removed in their resource's lane, so a removal never happens between a store and its count.
extension DiskEngine {
  /// Does the work that the first lookup need not wait for: removes orphans, counts the files, and enforces a lowered limit.
  func settle() {
    startupGate.wait()
    folder.collectOrphans()
    folder.adoptGeneration()
    let isLoaded = loadIndex()
    if !isLoaded || index.known.size > configuration.sizeLimit ?? .max { enforceLimit() }
    saveIndex()
  }

  /// Lists the files, which counts the changes of other processes.
  func list() throws(CacheError) {
    folder.adoptGeneration()
    let (changes, uses) = (folder.foreignChanges, folder.foreignUses)
    let entries = folder.openEntries()
    var found: [EntryName: EntryIndex.Use] = [:]
    found.reserveCapacity(index.known.count)
    index.beginList()
    do throws(CacheError) {
      try folder.forEachEntry { name, status in found[name] = EntryIndex.Use(status) }
    } catch {
      index.abandonList()
      throw error
    }
    endList(found, in: entries, since: changes, uses)
  }

  /// - Parameters:
  ///   - entries: The folder of the entries, opened after the changes were read and before the list began.
  ///   - changes: The changes of other caches before the list began.
  ///   - uses: The uses by other caches before the list began.
  ///   - seesUses: Whether the list reflects those uses.
  func endList(
    _ found: [EntryName: EntryIndex.Use], in entries: FileDescriptor?, since changes: FolderChanges?, _ uses: FolderUses?,
    seesUses: Bool = true
  ) {
    // An entry that this cache changed meanwhile may be listed before or after the change. Its lane excludes changes between this
    // check and the count.
    for name in index.endList(found) {
      executor.wait(.entry(name.lane)) { index.recordCheck(name, folder.status(name).map { EntryIndex.Use($0) }) }
    }
    folder.checkCounters(at: configuration.clock.uptime)
    index.trust(in: entries, since: changes, uses, seesUses: seesUses)
  }

  /// Returns the total size in bytes and the number of entries, including those of other processes.
  func sum() throws(CacheError) -> (size: Int64, count: Int) {
    if !folder.hasLostGeneration, let sum = index.sum(folder.foreignChanges) { return sum }
    try list()
    return index.known
  }

  func removeExpired() throws(CacheError) -> Int {
    try requireWritable()
    try list()
    var removed = 0
    for (name, _) in index.byLastUse() where !isSuspended {
      let isGone = executor.wait(.entry(name.lane)) {
        guard case .entry(let file) = EntryFile.find(folder.path(name), expecting: nil, folder.calls), isExpired(file.metadata),
          case .removed = remove(name, ifStill: file.status.identity)
        else { return false }
        return true
      }
      if isGone { removed += 1 }
    }
    count { $0.evictions[.expired, default: 0] += removed }
    return removed
  }

  /// Returns the wanted entries, the least recently used first. The files are listed if other caches have changed or used some.
  /// It throws if an entry cannot be read, because that entry might be wanted.
  func entries(where isWanted: (CacheKey, StoredMetadata) -> Bool) throws(CacheError) -> [ListedEntry] {
    if folder.hasLostGeneration || !index.hasAll(folder.foreignChanges, folder.foreignUses) { try list() }
    var wanted: [ListedEntry] = []
    for (name, use) in index.byLastUse() {
      guard !isSuspended else { throw SystemError.suspended.error("list the entries", folder.entries) }
      switch EntryFile.find(folder.path(name), expecting: nil, folder.calls) {
      case .entry(let file):
        let key = file.key
        if !isExpired(file.metadata), isInPlace(key, name), isWanted(key, file.metadata) {
          wanted.append(
            ListedEntry(
              key: key, metadata: file.metadata, size: file.status.allocatedSize, storedAt: file.header.storedAt,
              lastUsed: use.last))
        }
      case .failed(let error): throw error.error("open an entry", folder.path(name))
      // These are never served.
      case .nothing, .otherKey, .newer, .damaged: break
      }
    }
    return wanted
  }

  func verify(removingDamaged removes: Bool) throws(CacheError) -> VerificationReport {
    if removes { try requireWritable() }
    try list()
    var report = VerificationReport()
    for (name, _) in index.byLastUse() {
      guard !isSuspended else { throw SystemError.suspended.error("verify the entries", folder.entries) }
      verify(name, &report, removes: removes)
    }
    return report
  }

  private func verify(_ name: EntryName, _ report: inout VerificationReport, removes: Bool) {
    let path = folder.path(name)
    func note(_ reason: String, _ identity: FileStatus.Identity?) {
      report.damaged[path] = reason
      count { $0.damaged += 1 }
      guard removes, let identity else { return }
      let removal = executor.wait(.entry(name.lane)) { remove(name, ifStill: identity) }
      if case .removed = removal { report.removed += 1 }
    }
    switch EntryFile.find(path, expecting: nil, folder.calls) {
    case .entry(let file):
      do throws(SystemError) {
        guard isInPlace(file.key, name) else { return note("another key's entry", file.status.identity) }
        guard try file.isBodyWhole() else { return note("body", file.status.identity) }
        report.good += 1
        report.bodyBytes += file.bodyLength
      } catch {
        report.unreadable[path] = error.error("read an entry", path).reason
      }
    case .nothing, .otherKey: break
    case .newer: report.newer += 1
    case .damaged(let reason, let identity): note(reason, identity)
    case .failed(let error): report.unreadable[path] = error.error("read an entry", path).reason
    }
  }
}

/// The repair of a folder, in the maintenance lane.
extension DiskEngine {
  func repair() throws(CacheError) -> VerificationReport {
    try requireWritable()
    let orphans = folder.collectOrphans()
    // The index file is only a hint. It is written again below.
    forgetIndexFile()
    let renewedCounters = folder.renewCounters()
    var report = try verify(removingDamaged: true)
    (report.orphans, report.renewedCounters) = (orphans, renewedCounters)
    try list()
    saveIndex()
    return report
  }
}

/// A short delay after opening, in which the first lookups do not compete for processors with reading the index or listing the
/// files.
final class StartupGate: Sendable {
  private static let length = DispatchTimeInterval.milliseconds(20)

  private let isOver = DispatchSemaphore(value: 0)

  /// Returns when the delay is over.
  func wait() { _ = isOver.wait(timeout: .now() + Self.length) }

  /// Ends the delay because a caller needs the work behind it.
  func end() { isOver.signal() }
}

/// Evictions, in the maintenance lane. They rely on the index, and list the files if other caches have changed something.
extension DiskEngine {
  /// The number of entries chosen at once. It is large enough that the files of one folder are removed together.
  private static let choiceLimit = 8192

  func enforceLimit() {
    index.sweep {
      guard let size = try? sum().size, folder.isWritable, let limit = configuration.sizeLimit, size > limit else { return }
      evict(to: configuration.sizeMark, .size, sparingRecentUpTo: limit)
    }
  }

  /// Waits for the current sweep if the folder may exceed its limit by a tenth, and otherwise returns immediately. Without the
  /// wait, stores that outpace the sweep would exceed the limit without bound.
  func waitForEviction() async {
    guard let limit = configuration.sizeLimit,
      index.known.size - limit > limit / 10 || index.wantsList(limit: limit, folder.foreignChangesWithoutWaiting)
    else { return }
    // The maintenance lane runs in order, so this waits for that sweep. A store that is being closed has none.
    try? await executor.run(.maintenance) { () throws(CacheError) in }
  }

  func trim(to size: Int64) throws(CacheError) -> Int {
    try requireWritable()
    _ = try sum()
    return evict(to: size, .trimmed)
  }

  /// Evicts a tenth of the cache, but never the last entry.
  func evictTenth() {
    guard let (size, count) = try? sum(), folder.isWritable, count > 1 else { return }
    evict(to: size - max(size / 10, 1), .fullDisk, sparingRecentUpTo: .max)
  }

  /// Removes entries in the policy's order until their total size is at most `target` bytes. It continues if a file cannot be
  /// removed.
  ///
  /// - Parameter limit: The size in bytes up to which entries that were just stored stay. With `nil`, no entry is spared.
  /// - Returns: The number of removed entries.
  @discardableResult
  private func evict(to target: Int64, _ reason: EvictionReason, sparingRecentUpTo limit: Int64? = nil) -> Int {
    let target = max(target, -1)
    guard (try? folder.prepareToWrite()) != nil else { return 0 }
    var removed = 0
    var left: [EntryIndex.Victim] = []
    while case let excess = index.known.size - target, excess > 0, !isSuspended {
      let victims = index.choose(excess, most: Self.choiceLimit, sparingRecentUnless: limit.map { max(0, index.known.size - $0) })
      if victims.isEmpty { break }
      // Every chosen entry is removed even if others remove entries meanwhile. An entry put back would become the newest.
      for (shard, victims) in Dictionary(grouping: victims, by: \.name.shardNumber) {
        // A sweep that is cut short goes on with the next store.
        if isSuspended { left += victims } else { removed += evict(victims, from: shard, &left) }
      }
    }
    index.giveBack(left)
    if removed > 0 { noteChange() }
    count { $0.evictions[reason, default: 0] += removed }
    return removed
  }

  /// Removes entries of one shard, as one change in the counters.
  ///
  /// - Parameter left: Receives the entries that cannot be removed.
  private func evict(_ victims: [EntryIndex.Victim], from shard: UInt8, _ left: inout [EntryIndex.Victim]) -> Int {
    folder.change {
      let shard = folder.shardFolder(shard)
      // Another cache may also have stored an entry again that this one chose before.
      let checksUse = !index.knowsUses(folder.foreignUses) || !index.isCurrent(folder.foreignChanges)
      return victims.count { victim in
        let outcome = executor.wait(.entry(victim.name.lane)) { evict(victim, from: shard, checksUse) }
        if case .failed? = outcome {
          count { $0.failedRemovals += 1 }
          left.append(victim)
        }
        if case .removed? = outcome { return true }
        return false
      }
    }
  }

  /// Removes an entry in its lane, or returns `nil` if it was used, replaced or removed after it was chosen.
  private func evict(
    _ victim: EntryIndex.Victim, from shard: Result<FileDescriptor, SystemError>, _ checksUse: Bool
  ) -> StoreFolder.BatchRemoval? {
    guard index.isStillChosen(victim) else { return nil }
    let outcome = folder.remove(victim.name, in: shard, unlessUsedSince: checksUse ? victim.last : nil)
    index.evicted(victim, outcome)
    return outcome
  }
}

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
