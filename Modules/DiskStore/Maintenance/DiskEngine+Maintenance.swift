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
    for (name, _) in index.byLastUse() {
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
    for (name, _) in index.byLastUse() { verify(name, &report, removes: removes) }
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
