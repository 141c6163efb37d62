internal import CacheCore

/// The in-memory index of the entries, with their sizes and last uses.
///
/// It is built from the files in the background and rebuilt when other caches have changed something. It reports an entry as
/// absent only if the folder's counters are unchanged since the listing and this cache is not storing that resource. It may name
/// entries that are gone, but never lacks one that exists.
final class EntryIndex: Sendable {
  /// The state of the index when a caller began to examine files. Observations from before a list ended are outdated after it.
  struct Version: Hashable, Sendable {
    fileprivate var lists: UInt64 = 0
  }

  let state: Lock<EntryIndexState>
  private let limit: Int64

  /// - Parameter limit: The maximum total size in bytes, or `nil` for no limit.
  init(_ eviction: any EvictionPolicy = S3FIFO(), limit: Int64? = nil) {
    self.limit = limit ?? .max
    state = Lock(EntryIndexState(order: EvictionOrder(eviction, limit: limit)))
  }

  var version: Version { state.withLock { Version(lists: $0.lists) } }

  // MARK: Changes by this cache

  /// Notes that an entry is about to appear at `name`.
  func placing(_ name: EntryName) { state.withLock { _ = $0.placing.insert(name.resource) } }

  /// Notes that a move failed. The entry may still be in place if only a later step failed.
  func failedToPlace(_ name: EntryName) {
    state.withLock { state in
      state.doubt(name)
      state.placing.remove(name.resource)
    }
  }

  /// Records a stored entry.
  ///
  /// - Returns: The total known size in bytes.
  @discardableResult
  func stored(_ name: EntryName, size: Int64, at time: Timestamp) -> Int64 {
    state.withLock { state in
      state.set(name, Use(size: size, last: time))
      state.noteRecent(name, limit: limit)
      state.placing.remove(name.resource)
      state.stores += 1
      state.storedBytes += size
      return state.entries.total
    }
  }

  /// Records metadata that was appended to an entry.
  ///
  /// - Returns: The total known size in bytes.
  @discardableResult
  func resized(_ name: EntryName, size: Int64, at time: Timestamp) -> Int64 {
    state.withLock { state in
      state.set(name, Use(size: size, last: time))
      state.noteRecent(name, limit: limit)
      return state.entries.total
    }
  }

  /// Records a use of an entry whose file had `size` bytes, since other caches may have appended to it. `nil` means that the
  /// lookup had no turn, so the size may be outdated. An unknown entry is not added, because it may be gone; the next list
  /// decides.
  func used(_ name: EntryName, size: Int64?, at time: Timestamp) {
    state.withLock { state in
      let isKnown = state.use(name, at: time, size: size)
      if state.touched != nil || !isKnown && !state.isComplete { state.early[name] = time }
    }
  }

  /// Records that the file at `name` was missing or removed after the index had this version.
  func removed(_ name: EntryName, since version: Version) { removed(CollectionOfOne(name), since: version) }

  /// Records that the files at several names were missing or removed after the index had this version.
  func removed(_ names: some Collection<EntryName>, since version: Version) {
    state.withLock { state in
      let isOutdated = state.lists != version.lists
      for name in names {
        // Another process may have stored a file between the check and the list that ended meanwhile.
        if isOutdated { state.doubt(name) } else { state.set(name, nil) }
      }
    }
  }

  /// Makes the index unreliable until the next list, because all entries are about to be removed.
  func removingAll() { withExtendedLifetime(state.withLock { $0.trust(nil) }) {} }

  func removedAll() {
    let old = state.withLock { state in
      // A simultaneous store may have been counted and removed, or neither. The next query checks the files.
      defer { state.forgetEntries() }
      return (state.entries, state.order, state.trust(nil))
    }
    withExtendedLifetime(old) {}
  }

  /// Makes the index unreliable for all later queries.
  func close() {
    state.withLock { $0.isClosed = true }
  }

  // MARK: Queries

  /// Tests the known entries of a resource, `nil` if there are none.
  ///
  /// - Returns: The system's uptime before which the result is certain, or `nil` if the test fails.
  func leaseEnd(of resource: NameDigest, ifTrue isTrue: (ResourceEntries?) -> Bool) -> Duration? {
    state.withLock { state in
      guard isTrue(state.entries.resources[resource]) else { return nil }
      return state.vouches(for: resource) ? state.leaseEnd : .zero
    }
  }

  /// Whether a test of a resource's entries succeeds and its result is certain.
  ///
  /// - Parameters:
  ///   - changes: The changes by other caches, read after the lookup began.
  ///   - leaseEnd: The system's uptime until which the changes can be relied on, or `nil`.
  func passes(
    _ resource: NameDigest, _ changes: FolderChanges, leaseEnd: Duration?, _ isTrue: (ResourceEntries?) -> Bool
  ) -> Bool {
    state.withLock { state in
      guard state.isCurrent(changes) else { return false }
      if let leaseEnd { state.leaseEnd = max(state.leaseEnd, leaseEnd) }
      return state.vouches(for: resource) && isTrue(state.entries.resources[resource])
    }
  }

  /// Records a lookup that read the file system and found nothing.
  ///
  /// - Returns: Whether to list the files now. Once as many misses as entries have read the file system, a list costs no more
  ///   than they did. Misses and lists together thus cost at most twice the minimum.
  func wantsListAfterMiss(_ changes: FolderChanges?) -> Bool {
    state.withLock { state in
      let isBlind = state.listed != changes || state.doubted.count >= EntryIndexState.fewest
      guard let changes, changes.counts.isQuiet, isBlind, !state.isListWanted, state.touched == nil else { return false }
      state.blindMisses += 1
      guard state.blindMisses >= max(state.entries.count, EntryIndexState.fewest) else { return false }
      state.isListWanted = true
      return true
    }
  }

  /// Whether stores by other caches may have exceeded the known total by a tenth of `limit`.
  ///
  /// Other caches tell only the number of their changes, so their entries are assumed to be as large as those of this cache. At
  /// least a hundredth of the limit is stored between two lists, so that small changes by others do not make every store list the
  /// folder.
  func wantsList(limit: Int64, _ changes: FolderChanges?) -> Bool {
    state.withLock { state in
      guard state.storedBytes >= limit / 100, state.stores > 0 else { return false }
      guard let changes, let listed = state.listed, listed.serial == changes.serial else {
        return state.storedBytes >= limit / 10
      }
      let foreign = changes.counts.started &- listed.counts.started
      guard foreign > 0 else { return false }
      return Double(state.storedBytes) * (1 + Double(foreign) / Double(state.stores)) >= Double(limit) / 10
    }
  }

  /// Returns the total size in bytes and the number of entries, or `nil` if the files must be listed first.
  func sum(_ changes: FolderChanges?) -> (size: Int64, count: Int)? {
    state.withLock { state in
      guard state.isCurrent(changes), state.doubted.isEmpty else { return nil }
      return (state.entries.total, state.entries.count)
    }
  }

  /// Whether the files were listed and other caches have changed nothing since.
  func isCurrent(_ changes: FolderChanges?) -> Bool {
    state.withLock { $0.isCurrent(changes) }
  }

  /// Whether the index has all entries with their last uses, so that the files need not be listed.
  func hasAll(_ changes: FolderChanges?, _ uses: FolderUses?) -> Bool {
    state.withLock { state in
      state.isCurrent(changes) && state.placing.isEmpty && state.doubted.isEmpty && uses != nil && state.listedUses == uses
    }
  }

  /// Whether the state of some names is unknown until the next list.
  var hasDoubts: Bool { state.withLock { !$0.doubted.isEmpty } }

  /// Returns all entries if they match the folder, or `nil` during a change.
  func snapshot(_ changes: FolderChanges?) -> ResourceTable? {
    state.withLock { state in
      guard state.isCurrent(changes), state.placing.isEmpty, state.doubted.isEmpty else { return nil }
      return state.entries
    }
  }

  /// The total size and number of known entries.
  var known: (size: Int64, count: Int) { state.withLock { ($0.entries.total, $0.entries.count) } }

  /// The folder of the entries, open, if the index was reliable when last asked.
  var folder: FileDescriptor? { state.withLock { $0.folder } }

  func use(_ name: EntryName) -> Use? { state.withLock { $0.entries[name] } }

  /// Returns all entries, the least recently used first.
  func byLastUse() -> [(name: EntryName, use: Use)] {
    let entries = state.withLock { $0.entries }
    var all: [(name: EntryName, use: Use)] = []
    all.reserveCapacity(entries.count)
    entries.forEach { all.append((name: $0, use: $1)) }
    return all.sorted { ($0.use.last, $0.name.resource) < ($1.use.last, $1.name.resource) }
  }
}

/// Filling the index from the folder.
extension EntryIndex {
  func beginList() {
    state.withLock { state in
      state.touched = []
      state.stores = 0
      state.storedBytes = 0
      state.blindMisses = 0
      state.isListWanted = false
    }
  }

  /// Takes over a list, except for entries that changed meanwhile.
  ///
  /// - Returns: The names that changed or whose state is unknown. Check each in its lane and pass the result to ``look(_:_:)``.
  func endList(_ found: [EntryName: Use]) -> [EntryName] {
    // The slow work is done outside the lock.
    let list = list(of: found)
    let (again, old, folder) = state.withLock { state in
      let again = state.doubted.values.reduce(state.touched ?? []) { $0.union($1) }
      let old = state.take(list, but: again)
      for (name, time) in state.early { _ = state.use(name, at: time) }
      state.touched = nil
      state.early = [:]
      state.lists += 1
      state.isComplete = true
      return (again, old, state.trust(nil))
    }
    withExtendedLifetime((old, folder)) {}
    return Array(again)
  }

  // A separate function, so that the copied state is released early. While it exists, a change would copy all of it.
  private func list(of found: [EntryName: Use]) -> EntryList {
    let (isComplete, known, order) = state.withLock { ($0.isComplete, $0.entries, $0.order.emptied) }
    return isComplete ? .changes(known.changes(to: found)) : EntryList(first: found, order)
  }

  /// Records the file found at `name` by a check in its lane.
  func recordCheck(_ name: EntryName, _ use: Use?) {
    state.withLock { state in
      state.settle(name, use)
      state.doubt(name, false)
    }
  }

  /// Makes the index reliable until other caches change something.
  ///
  /// - Parameters:
  ///   - folder: The folder of the entries, opened after the changes were read and before the list began.
  ///   - changes: The changes of other caches before the list began.
  ///   - uses: The uses by other caches before the list began.
  ///   - seesUses: Whether the list reflects those uses. If not, it has the sizes of that time but the uses of another.
  func trust(in folder: FileDescriptor? = nil, since changes: FolderChanges?, _ uses: FolderUses? = nil, seesUses: Bool = true) {
    let old = state.withLock { state in
      (state.listedUses, state.sizedUses) = (seesUses ? uses : nil, uses)
      return state.trust(changes, in: folder)
    }
    withExtendedLifetime(old) {}
  }

  /// Whether all sizes match the files. A cache that appends to a file also counts a use.
  func knowsSizes(_ uses: FolderUses?) -> Bool { state.withLock { $0.sizedUses != nil && $0.sizedUses == uses } }

  func abandonList() { state.withLock { $0.touched = nil } }
}

/// The result of a listing.
enum EntryList {
  /// The complete list with its eviction order.
  case first(ResourceTable, EvictionOrder)
  /// The differences from the known entries, with `nil` for entries that are gone.
  case changes([(name: EntryName, use: EntryIndex.Use?)])

  /// Creates the first list. Entries are evicted in the order of their last use according to the files.
  init(first found: [EntryName: EntryIndex.Use], _ order: EvictionOrder) {
    var order = order
    var entries = ResourceTable(minimumCapacity: found.count)
    for (name, use) in found.byLastUse() {
      var use = use
      order.insert(name, &use)
      entries.set(name, use)
    }
    self = .first(entries, order)
  }
}

extension ResourceTable {
  /// Returns the differences from `found`, ordered by last use. A later use known only here is not a difference.
  fileprivate func changes(to found: [EntryName: EntryIndex.Use]) -> [(name: EntryName, use: EntryIndex.Use?)] {
    var changes: [(name: EntryName, use: EntryIndex.Use?)] = []
    forEach { name, _ in
      if found[name] == nil { changes.append((name, nil)) }
    }
    let others = found.filter { name, use in
      guard let known = self[name] else { return true }
      return known.size != use.size || known.last < use.last
    }
    for (name, use) in others.byLastUse() { changes.append((name, use)) }
    return changes
  }
}

extension Sequence<(key: EntryName, value: EntryIndex.Use)> {
  /// The elements ordered by last use, the least recently used first.
  func byLastUse() -> [(name: EntryName, use: EntryIndex.Use)] {
    map { (name: $0.key, use: $0.value) }.sorted { ($0.use.last, $0.name.resource) < ($1.use.last, $1.name.resource) }
  }
}
