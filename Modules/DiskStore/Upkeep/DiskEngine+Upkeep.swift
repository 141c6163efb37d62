internal import CacheCore

/// What is done for the folder as a whole, in the upkeep's lane.
///
/// Single entries are removed in their own lanes, so that a removal never comes between an entry's store and its being counted.
extension DiskEngine {
  /// What the first lookup does not wait for: orphans are collected, the files counted, and the limit enforced where it was lowered.
  func settle() {
    folder.collectOrphans()
    folder.adoptGeneration()
    let isLoaded = loadIndex()
    if !isLoaded || index.known.size > configuration.sizeLimit ?? .max { enforceLimit() }
    saveIndex()
  }

  /// Lists the files, so that what other processes stored and removed is counted, once.
  func list() throws(CacheError) {
    folder.adoptGeneration()
    let changes = folder.foreignChanges
    var found: [EntryName: EntryIndex.Use] = [:]
    found.reserveCapacity(index.known.count)
    index.beginList()
    do throws(CacheError) {
      try folder.forEachEntry { name, status in found[name] = EntryIndex.Use(status) }
    } catch {
      index.abandonList()
      throw error
    }
    endList(found, since: changes)
  }

  /// - Parameter changes: those of others, before the list was begun.
  func endList(_ found: [EntryName: EntryIndex.Use], since changes: FolderChanges?) {
    // What we changed meanwhile may have been listed before or after it: it is looked up where nothing of ours comes between the file and its being counted.
    for name in index.endList(found) {
      executor.wait(.entry(name.lane)) { index.look(name, folder.status(name).map { EntryIndex.Use($0) }) }
    }
    folder.look(at: configuration.clock.uptime)
    index.trust(since: changes)
  }

  /// Bytes and entries, other processes' among them.
  func sum() throws(CacheError) -> (size: Int64, count: Int) {
    if !folder.hasLostGeneration, let sum = index.sum(folder.foreignChanges) { return sum }
    try list()
    return index.known
  }

  func enforceLimit() {
    guard (try? list()) != nil, folder.isWritable, let limit = configuration.sizeLimit, index.known.size > limit else {
      return
    }
    evict(to: configuration.sizeMark, .size)
  }

  /// How many entries are removed before loads get their turn again.
  private static let evictionsAtOnce = 128

  /// Removes what was not used for longest. Goes on when a file can't be removed.
  ///
  /// - Returns: how many entries were removed.
  @discardableResult
  func evict(to target: Int64, _ reason: DiskCounters.EvictionReason) -> Int {
    var removed = 0
    var rest = index.byLastUse()[...]
    while !rest.isEmpty, index.known.size > target {
      // As many as are needed, as far as is known now, and a few at most for each lane: changing lanes for each costs more than the removals.
      var excess = index.known.size - target
      var lanes: [UInt64: [(name: EntryName, use: EntryIndex.Use)]] = [:]
      var count = 0
      while let next = rest.first, excess > 0, count < Self.evictionsAtOnce {
        rest.removeFirst()
        lanes[executor.number(of: next.name.lane), default: []].append(next)
        excess -= next.use.size
        count += 1
      }
      for victims in lanes.values { removed += evict(victims) }
    }
    self.count { $0.evictions[reason, default: 0] += removed }
    return removed
  }

  /// Removes entries of one lane, but for those that were used or replaced since the order was made.
  private func evict(_ victims: [(name: EntryName, use: EntryIndex.Use)]) -> Int {
    guard let first = victims.first else { return 0 }
    return executor.wait(.entry(first.name.lane)) {
      victims.count { name, use in
        guard index.use(name)?.last == use.last, case .removed = remove(name) else { return false }
        return true
      }
    }
  }

  func trim(to size: Int64) throws(CacheError) -> Int {
    try requireWritable()
    try list()
    return evict(to: size, .trimmed)
  }

  func removeExpired() throws(CacheError) -> Int {
    try requireWritable()
    try list()
    var removed = 0
    for (name, _) in index.byLastUse() {
      let isGone = executor.wait(.entry(name.lane)) {
        guard case .entry(let file) = EntryFile.find(folder.path(name), expecting: nil), isExpired(file.metadata),
          case .removed = remove(name, ifStill: file.status.identity)
        else { return false }
        return true
      }
      if isGone { removed += 1 }
    }
    count { $0.evictions[.expired, default: 0] += removed }
    return removed
  }

  /// The entries that are wanted. Which of them one is that can't be read, nobody can say: then there is no list.
  func entries(where isWanted: (CacheKey, StoredMetadata) -> Bool) throws(CacheError) -> [ListedEntry] {
    try list()
    var wanted: [ListedEntry] = []
    for (name, _) in index.byLastUse() {
      switch EntryFile.find(folder.path(name), expecting: nil) {
      case .entry(let file):
        if !isExpired(file.metadata), isInPlace(file, name), isWanted(file.key, file.metadata) {
          wanted.append(ListedEntry(key: file.key, metadata: file.metadata))
        }
      case .failed(let error): throw error.error("open an entry", folder.path(name))
      // None of them is ever served.
      case .nothing, .otherKey, .newer, .damaged: break
      }
    }
    return wanted
  }

  func summaries() throws(CacheError) -> [EntrySummary] {
    try list()
    return index.byLastUse().compactMap { name, use in
      guard case .entry(let file) = EntryFile.find(folder.path(name), expecting: nil), !isExpired(file.metadata),
        isInPlace(file, name)
      else { return nil }
      return EntrySummary(
        key: file.key, size: file.status.size, stored: file.header.storedAt, lastUsed: use.last, metadata: file.metadata)
    }
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
      report.damaged.append(.init(path: path, reason: reason))
      count { $0.damaged += 1 }
      guard removes, let identity else { return }
      let removal = executor.wait(.entry(name.lane)) { remove(name, ifStill: identity) }
      if case .removed = removal { report.removed += 1 }
    }
    switch EntryFile.find(path, expecting: nil) {
    case .entry(let file):
      do throws(SystemError) {
        guard isInPlace(file, name) else { return note("another key's entry", file.status.identity) }
        guard try file.isBodyWhole() else { return note("body", file.status.identity) }
        report.good += 1
        report.bodyBytes += file.bodyLength
      } catch {
        report.unreadable.append(.init(path: path, reason: error.error("read an entry", path).reason))
      }
    case .nothing, .otherKey: break
    case .newer: report.newer += 1
    case .damaged(let reason, let identity): note(reason, identity)
    case .failed(let error): report.unreadable.append(.init(path: path, reason: error.error("read an entry", path).reason))
    }
  }
}
