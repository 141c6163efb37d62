internal import CacheCore

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
