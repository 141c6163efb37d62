internal import CacheCore

/// What an ``EntryIndex`` keeps behind its lock.
struct EntryIndexState {
  /// Misses that may ask the file system before the files are listed on their account.
  static let fewest = 64

  private(set) var entries = ResourceTable()
  /// In which they leave.
  private(set) var order: EvictionOrder
  /// Lists that have ended.
  var lists: UInt64 = 0
  /// Entries that changed since the list was begun; nil when none is being made.
  var touched: Set<EntryName>?
  /// Resources of which an entry is on its way to its place. One at most for each: a resource's files are worked on in one lane.
  var placing: Set<NameDigest> = []
  /// Names, by resource, at which nobody knows what lies until the next list.
  private(set) var doubted: [NameDigest: Set<EntryName>] = [:]
  /// Uses that the list under way, or the first one, does not know of.
  var early: [EntryName: Timestamp] = [:]
  var isComplete = false
  var isClosed = false
  /// What others had changed when the last list was begun; nil: the files must be listed.
  var listed: FolderChanges?
  /// What others had used then; nil: not known.
  var listedUses: FolderUses?
  /// What others had used when all sizes were those of the files; nil: not known.
  var sizedUses: FolderUses?
  /// Entries, and their bytes, that were stored since then.
  var stores: UInt64 = 0
  var storedBytes: Int64 = 0
  /// Misses since then that had to ask the file system.
  var blindMisses = 0
  var isListWanted = false

  init(order: EvictionOrder) { self.order = order }

  mutating func set(_ name: EntryName, _ use: EntryIndex.Use?) {
    touched?.insert(name)
    guard var use else {
      if let known = entries.remove(name) { order.remove(known) }
      return
    }
    if let known = entries[name], known.slot >= 0 {
      (use.slot, use.uses) = (known.slot, known.uses)
      order.replace(name, use)
    } else {
      order.insert(name, &use)
    }
    entries.set(name, use)
  }

  /// Notes a use, and the size that was seen; false when the entry is not known.
  mutating func use(_ name: EntryName, at time: Timestamp, size: Int64? = nil) -> Bool {
    entries.update(name) { use in
      use.use(at: time)
      let before = use.size
      if let size { use.resize(to: size) }
      let isResized = use.size != before
      if use.slot < 0 { return order.insert(name, &use) }
      if isResized { order.replace(name, use) }
      order.access(use)
    }
  }

  /// Takes over what lies in the folder at `name`; a later use that is known of stays.
  mutating func settle(_ name: EntryName, _ found: EntryIndex.Use?) {
    guard let found, let known = entries[name] else { return set(name, found) }
    if found.last > known.last {
      _ = use(name, at: found.last, size: found.size)
    } else if found.size != known.size {
      set(name, EntryIndex.Use(size: found.size, last: known.last))
    }
    touched?.insert(name)
  }

  /// Takes over what a list has found, but for what it is too late for.
  ///
  /// - Returns: what the first list takes the place of, to be let go of outside the lock.
  mutating func take(_ list: EntryList, but again: Set<EntryName>) -> (ResourceTable, EvictionOrder)? {
    switch list {
    case .changes(let changes):
      for (name, use) in changes where !again.contains(name) { settle(name, use) }
      return nil
    case .first(let found, let foundOrder):
      let (known, knownOrder) = (entries, order)
      (entries, order) = (found, foundOrder)
      known.forEach { name, use in
        if let last = entries[name]?.last, last < use.last { _ = self.use(name, at: use.last) }
      }
      // Behind all that was found, in the order of their uses; used as often as the index file said, where that was more.
      let changed = again.compactMap { name -> (key: EntryName, value: EntryIndex.Use)? in
        let uses = entries[name]?.uses ?? 0
        set(name, nil)
        guard var use = known[name] else { return nil }
        use.uses = max(use.uses, uses)
        return (name, use)
      }
      for (name, use) in changed.byLastUse() { set(name, use) }
      return (known, knownOrder)
    }
  }

  mutating func forgetEntries() { (entries, order) = (ResourceTable(), order.emptied) }

  // MARK: Eviction

  /// The entry that leaves next; it has no place in the order from here on.
  mutating func chooseNext() -> EntryIndex.Victim? {
    while let name = order.evict() {
      var victim: EntryIndex.Victim?
      entries.update(name) { use in
        use.slot = -1
        victim = EntryIndex.Victim(name: name, size: use.size, last: use.last)
      }
      if let victim { return victim }
    }
    return nil
  }

  func isChosen(_ name: EntryName) -> Bool { entries[name].map { $0.slot < 0 } ?? false }

  /// Gives an entry that was chosen a place in the order again.
  mutating func takeIn(_ name: EntryName) { entries.update(name) { order.insert(name, &$0) } }

  // MARK: Doubts

  mutating func doubt(_ name: EntryName, _ isDoubted: Bool = true) {
    if isDoubted {
      doubted[name.resource, default: []].insert(name)
    } else if doubted[name.resource]?.remove(name) != nil, doubted[name.resource]?.isEmpty == true {
      doubted[name.resource] = nil
    }
  }

  /// Whether the files were listed, and others have changed nothing since. A change that was under way while they were listed may
  /// be in the list or not.
  func isCurrent(_ changes: FolderChanges?) -> Bool {
    guard isComplete, let changes else { return false }
    return changes == listed && changes.counts.isQuiet
  }

  /// Whether what the index says of a resource is so.
  func vouches(for resource: NameDigest, _ changes: FolderChanges?) -> Bool {
    isCurrent(changes) && !isClosed && !placing.contains(resource) && doubted[resource] == nil
  }
}
