internal import CacheCore

/// How the index comes to know what lies in the folder.
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

  /// Takes what was found over, but for what changed meanwhile.
  ///
  /// - Returns: the names that changed, or are in doubt: each is to be looked at again in its own lane, and told to
  ///   ``look(_:_:)``.
  func endList(_ found: [EntryName: Use]) -> [EntryName] {
    // What takes long is made ready outside the lock.
    let list = list(of: found)
    let (again, old) = state.withLock { state in
      let again = state.doubted.values.reduce(state.touched ?? []) { $0.union($1) }
      let old = state.take(list, but: again)
      for (name, time) in state.early { _ = state.use(name, at: time) }
      state.touched = nil
      state.early = [:]
      state.lists += 1
      state.listed = nil
      state.isComplete = true
      return (again, old)
    }
    withExtendedLifetime(old) {}
    return Array(again)
  }

  // By itself: what was known is held no longer than this, for nobody can change it meanwhile without copying all of it.
  private func list(of found: [EntryName: Use]) -> EntryList {
    let (isComplete, known, order) = state.withLock { ($0.isComplete, $0.entries, $0.order.emptied) }
    return isComplete ? .changes(known.changes(to: found)) : EntryList(first: found, order)
  }

  /// What lies at `name`, looked up in its lane.
  func look(_ name: EntryName, _ use: Use?) {
    state.withLock { state in
      state.settle(name, use)
      state.doubt(name, false)
    }
  }

  /// From now on the index answers while others change nothing more.
  ///
  /// - Parameters:
  ///   - changes: those of others before the list was begun.
  ///   - uses: those of others, then.
  ///   - seesUses: whether the list has seen those; else it has seen the sizes of then, but uses of another time.
  func trust(since changes: FolderChanges?, _ uses: FolderUses? = nil, seesUses: Bool = true) {
    state.withLock { ($0.listed, $0.listedUses, $0.sizedUses) = (changes, seesUses ? uses : nil, uses) }
  }

  /// Whether all sizes are those of the files: who appends to one of them notes a use.
  func knowsSizes(_ uses: FolderUses?) -> Bool { state.withLock { $0.sizedUses != nil && $0.sizedUses == uses } }

  func abandonList() { state.withLock { $0.touched = nil } }
}

/// What a list has found.
enum EntryList {
  /// All of it, and the order in which it leaves.
  case first(ResourceTable, EvictionOrder)
  /// What is otherwise than was known; nil: gone.
  case changes([(name: EntryName, use: EntryIndex.Use?)])

  /// The first list. Who was used last, as far as the files tell, leaves last.
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
  /// What is otherwise in `found`, by the last use. A later use that is known here is no difference.
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
  /// The one that was not used for longest first.
  func byLastUse() -> [(name: EntryName, use: EntryIndex.Use)] {
    map { (name: $0.key, use: $0.value) }.sorted { ($0.use.last, $0.name.resource) < ($1.use.last, $1.name.resource) }
  }
}
