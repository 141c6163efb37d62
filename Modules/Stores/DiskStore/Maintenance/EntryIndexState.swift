internal import CacheCore

/// The state behind an ``EntryIndex``'s lock.
struct EntryIndexState {
  /// The minimum number of misses that read the file system before they trigger a list.
  static let fewest = 64

  private(set) var entries = ResourceTable()
  /// The eviction order of the entries.
  private(set) var order: EvictionOrder
  /// The number of completed lists.
  var lists: UInt64 = 0
  /// The entries that changed since the current list began, or `nil` without a list.
  var touched: Set<EntryName>?
  /// The resources for which an entry is being moved into place. There is at most one entry per resource, because each has one
  /// lane.
  var placing: Set<NameDigest> = []
  /// The names, by resource, whose state is unknown until the next list.
  private(set) var doubted: [NameDigest: Set<EntryName>] = [:]
  /// The uses that the current list, or the first one, does not include.
  var early: [EntryName: Timestamp] = [:]
  var isComplete = false
  var isClosed = false
  /// The changes of other caches when the last list began, or `nil` if the files must be listed.
  private(set) var listed: FolderChanges?
  /// The folder of the entries that the last list read, while the index is reliable. A path from it is quicker to resolve.
  private(set) var folder: FileDescriptor?
  /// The system's uptime until which no other cache can have changed anything since the last list; see ``Generation/lease``.
  var leaseEnd = Duration.zero
  /// The uses by other caches at that time, or `nil` if unknown.
  var listedUses: FolderUses?
  /// The uses by other caches when all sizes matched the files, or `nil` if unknown.
  var sizedUses: FolderUses?
  /// The number and total size of the entries stored since then.
  var stores: UInt64 = 0
  var storedBytes: Int64 = 0
  /// The number of misses since then that read the file system.
  var blindMisses = 0
  var isListWanted = false
  /// The entries that a sweep must not evict, numbered in the order in which they were stored: the last one, and those that were
  /// stored since a sweep became necessary.
  private(set) var recent: [EntryName: UInt64] = [:]
  private(set) var lastRecent: UInt64 = 0
  /// Whether a stored entry has exceeded the limit since the last sweep began.
  var needsSweep = false
  var isSweeping = false

  init(order: EvictionOrder) { self.order = order }

  /// Records that an entry was stored or updated.
  mutating func noteRecent(_ name: EntryName, limit: Int64) {
    if !needsSweep, !isSweeping { recent.removeAll(keepingCapacity: true) }
    lastRecent += 1
    recent[name] = lastRecent
    if entries.total > limit { needsSweep = true }
  }

  /// Forgets the entries whose sweep has ended, except the last one.
  mutating func endSweep(of first: UInt64) {
    isSweeping = false
    recent = recent.filter { $0.value > first || $0.value == lastRecent }
  }

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

  /// Records a use and the size seen. Returns `false` if the entry is not known.
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

  /// Takes over the file found at `name`, but keeps a later known use.
  mutating func settle(_ name: EntryName, _ found: EntryIndex.Use?) {
    guard let found, let known = entries[name] else { return set(name, found) }
    if found.last > known.last {
      _ = use(name, at: found.last, size: found.size)
    } else if found.size != known.size {
      set(name, EntryIndex.Use(size: found.size, last: known.last))
    }
    touched?.insert(name)
  }

  /// Takes over a list, except for entries that changed after it.
  ///
  /// - Returns: The state that the first list replaces, to be released outside the lock.
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
      // They follow all listed entries, in the order of their uses, with the number of uses from the index file if that is
      // higher.
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

  /// Makes the index reliable until other caches change something, or unreliable with `nil`.
  ///
  /// - Returns: The folder of an earlier list. It is to be released outside the lock, because that closes it.
  mutating func trust(_ changes: FolderChanges?, in folder: FileDescriptor? = nil) -> FileDescriptor? {
    defer { (listed, self.folder, leaseEnd) = (changes, folder, .zero) }
    return self.folder
  }

  mutating func forgetEntries() { (entries, order) = (ResourceTable(), order.emptied) }

  // MARK: Eviction

  /// Removes and returns the next entry in the eviction order. The entry stays in the index.
  mutating func chooseNext() -> EntryIndex.Victim? {
    while let name = order.evict() {
      var victim: EntryIndex.Victim?
      let folder = entries.folderSize(ifOnly: name)
      entries.update(name) { use in
        use.slot = -1
        victim = EntryIndex.Victim(name: name, size: use.size + folder, last: use.last)
      }
      if let victim { return victim }
    }
    return nil
  }

  func isChosen(_ name: EntryName) -> Bool { entries[name].map { $0.slot < 0 } ?? false }

  /// Puts a chosen entry back into the eviction order.
  mutating func takeIn(_ name: EntryName) { entries.update(name) { order.insert(name, &$0) } }

  /// Puts a chosen entry back as one that was not evicted.
  mutating func spare(_ name: EntryName) { entries.update(name) { order.spare(name, &$0) } }

  // MARK: Doubts

  mutating func doubt(_ name: EntryName, _ isDoubted: Bool = true) {
    if isDoubted {
      doubted[name.resource, default: []].insert(name)
    } else if doubted[name.resource]?.remove(name) != nil, doubted[name.resource]?.isEmpty == true {
      doubted[name.resource] = nil
    }
  }

  /// Whether the files were listed and other caches have changed nothing since. A change in progress may be in the list or not.
  func isCurrent(_ changes: FolderChanges?) -> Bool {
    guard isComplete, let changes else { return false }
    return changes == listed && changes.counts.isQuiet
  }

  /// Whether the index is reliable for a resource if it is current.
  func vouches(for resource: NameDigest) -> Bool {
    !isClosed && !placing.contains(resource) && doubted[resource] == nil
  }
}

extension EntryIndex {
  /// The known facts about one entry.
  struct Use: Sendable {
    /// The maximum number of uses that is counted.
    static let mostUses: UInt8 = 3

    /// The space in bytes that the file occupies, capped at ``IndexFile/sizeLimit``; see ``FileStatus/allocatedSize(of:)``.
    private(set) var size: Int64
    var last: Timestamp
    /// The number of known uses since the entry was stored, capped at ``mostUses``.
    var uses: UInt8
    /// The slot in the ``EvictionOrder``, or -1 for none.
    var slot: Int32 = -1

    init(size: Int64, last: Timestamp, uses: UInt8 = 0) {
      (self.size, self.last, self.uses) = (Self.counted(size), last, min(uses, Self.mostUses))
    }

    init(_ status: FileStatus) { self.init(size: status.allocatedSize, last: status.modified) }

    private static func counted(_ size: Int64) -> Int64 { min(max(size, 0), IndexFile.sizeLimit) }

    mutating func resize(to size: Int64) { self.size = Self.counted(size) }

    mutating func use(at time: Timestamp) {
      last = time
      if uses < Self.mostUses { uses += 1 }
    }
  }
}

/// The entries by resource, with their number and total size. The total includes the folders of the resources.
struct ResourceTable: Sendable {
  private(set) var resources: [NameDigest: ResourceEntries] = [:]
  /// The total size in bytes, capped at ``Int64/max``.
  var total: Int64 { Int64(clamping: sum) }
  /// The sum. Eight million sparse files of the maximum size exceed 64 bits.
  private var sum: Int128 = 0
  private(set) var count = 0

  init() {}

  init(minimumCapacity: Int) { resources.reserveCapacity(minimumCapacity) }

  init(_ entries: [EntryName: EntryIndex.Use]) {
    resources.reserveCapacity(entries.count)
    for (name, use) in entries { set(name, use) }
  }

  /// Returns the size in bytes of the folder that an entry has for itself, or 0 if there is none.
  func folderSize(ifOnly name: EntryName) -> Int64 {
    name.member != nil && resources[name.resource]?.memberCount == 1 ? FileStatus.blockSize : 0
  }

  subscript(name: EntryName) -> EntryIndex.Use? { resources[name.resource]?[name.member] }

  /// - Returns: The previous record.
  @discardableResult
  mutating func set(_ name: EntryName, _ use: EntryIndex.Use) -> EntryIndex.Use? {
    // Updated in place, because a copy of the resource's entries would copy all its members.
    let known = resources[name.resource, default: ResourceEntries()].replace(name.member, use)
    sum += Int128(use.size - (known?.size ?? 0))
    if known == nil {
      count += 1
      sum += Int128(folderSize(ifOnly: name))
    }
    return known
  }

  /// - Returns: The removed record.
  @discardableResult
  mutating func remove(_ name: EntryName) -> EntryIndex.Use? {
    let folder = folderSize(ifOnly: name)
    guard let place = resources.index(forKey: name.resource), let known = resources.values[place].replace(name.member, nil) else {
      return nil
    }
    sum -= Int128(folder)
    if resources.values[place].isEmpty { resources.remove(at: place) }
    sum -= Int128(known.size)
    count -= 1
    return known
  }

  /// Changes the record of an entry, if it has one.
  @discardableResult
  mutating func update(_ name: EntryName, _ change: (inout EntryIndex.Use) -> Void) -> Bool {
    guard let place = resources.index(forKey: name.resource), var use = resources.values[place][name.member] else { return false }
    let before = use.size
    change(&use)
    sum += Int128(use.size - before)
    _ = resources.values[place].replace(name.member, use)
    return true
  }

  func forEach(_ body: (EntryName, EntryIndex.Use) -> Void) {
    for (resource, entries) in resources { entries.forEach { body(EntryName(resource: resource, member: $0), $1) } }
  }
}

/// The records of one resource's entries.
struct ResourceEntries: Sendable {
  private var plain: EntryIndex.Use?
  private var members: [EntryName.Member: EntryIndex.Use] = [:]

  var isEmpty: Bool { plain == nil && members.isEmpty }

  /// The number of entries in the resource's folder.
  var memberCount: Int { members.count }

  var hasVariants: Bool { members.keys.contains { !$0.isTransform } }

  var hasTransforms: Bool { members.keys.contains { $0.isTransform } }

  subscript(member: EntryName.Member?) -> EntryIndex.Use? { member.map { members[$0] } ?? plain }

  /// - Returns: The previous record.
  mutating func replace(_ member: EntryName.Member?, _ use: EntryIndex.Use?) -> EntryIndex.Use? {
    guard let member else {
      defer { plain = use }
      return plain
    }
    guard let use else { return members.removeValue(forKey: member) }
    return members.updateValue(use, forKey: member)
  }

  func forEach(_ body: (EntryName.Member?, EntryIndex.Use) -> Void) {
    if let plain { body(nil, plain) }
    for (member, use) in members { body(member, use) }
  }
}
