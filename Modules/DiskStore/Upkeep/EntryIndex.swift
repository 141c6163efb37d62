internal import CacheCore

/// What is known of the entries in memory: which there are, how large each is, and when it was used last.
///
/// Built from the files in the background, and made again from them when others have changed something: the files are the truth.
/// It says that there is no entry only while the folder's counters are as they were before the files were listed, and of no name
/// at which something of ours is under way: it may name entries that are gone, never lack one that is there.
final class EntryIndex: Sendable {
  /// How far the index had got when somebody began to look at the files: what was seen of them before a list ended says nothing
  /// after it.
  struct Version: Hashable, Sendable {
    fileprivate var lists: UInt64 = 0
  }

  let state: Lock<EntryIndexState>

  /// - Parameter limit: bytes of all entries; nil: no limit.
  init(_ eviction: any EvictionPolicy = S3FIFO(), limit: Int64? = nil) {
    state = Lock(EntryIndexState(order: EvictionOrder(eviction, limit: limit)))
  }

  var version: Version { state.withLock { Version(lists: $0.lists) } }

  // MARK: Changes of our own

  /// An entry is about to appear at `name`.
  func placing(_ name: EntryName) { state.withLock { _ = $0.placing.insert(name.resource) } }

  /// It could not be moved into its place; it may be there all the same, when only what comes after the move has failed.
  func failedToPlace(_ name: EntryName) {
    state.withLock { state in
      state.doubt(name)
      state.placing.remove(name.resource)
    }
  }

  /// An entry was stored.
  ///
  /// - Returns: the sum of all sizes that are known, in bytes.
  @discardableResult
  func stored(_ name: EntryName, size: Int64, at time: Timestamp) -> Int64 {
    state.withLock { state in
      state.set(name, Use(size: size, last: time))
      state.placing.remove(name.resource)
      state.stores += 1
      state.storedBytes += size
      return state.entries.total
    }
  }

  /// Metadata was appended to an entry.
  ///
  /// - Returns: the sum of all sizes that are known, in bytes.
  @discardableResult
  func resized(_ name: EntryName, size: Int64, at time: Timestamp) -> Int64 {
    state.withLock { state in
      state.set(name, Use(size: size, last: time))
      return state.entries.total
    }
  }

  /// An entry was used, whose file had `size` bytes: others may have appended to it. One that is not known is not added: it may
  /// be gone by now, and the next list will tell. Nil: who looked had no turn, so there may be a later size by now.
  func used(_ name: EntryName, size: Int64?, at time: Timestamp) {
    state.withLock { state in
      let isKnown = state.use(name, at: time, size: size)
      if state.touched != nil || !isKnown && !state.isComplete { state.early[name] = time }
    }
  }

  /// There was no file at `name`, or it was removed, since the index was at `version`.
  func removed(_ name: EntryName, since version: Version) {
    state.withLock { state in
      if state.lists == version.lists {
        state.set(name, nil)
      } else {
        // Another process may have stored one between our look and the list that ended meanwhile.
        state.doubt(name)
      }
    }
  }

  func removedAll() {
    let old = state.withLock { state in
      // A store that came at the same moment may have been counted and swept away, or neither: the files are asked before the
      // next answer.
      state.listed = nil
      defer { state.forgetEntries() }
      return (state.entries, state.order)
    }
    withExtendedLifetime(old) {}
  }

  /// Refuses answers from now on.
  func close() {
    state.withLock { $0.isClosed = true }
  }

  // MARK: Questions

  /// Whether there surely is no entry at `name`.
  func lacks(_ name: EntryName, _ changes: FolderChanges?) -> Bool {
    state.withLock { $0.vouches(for: name.resource, changes) && $0.entries[name] == nil }
  }

  /// The size in bytes of the entry at `name`, where it is known to be there and, if it is to be `alone`, to have no other
  /// variant beside it.
  func size(of name: EntryName, alone: Bool, _ changes: FolderChanges?) -> Int64? {
    state.withLock { state in
      guard state.vouches(for: name.resource, changes), let entries = state.entries.resources[name.resource] else { return nil }
      return alone && entries.hasVariants ? nil : entries[name.member]?.size
    }
  }

  /// Whether there surely is no transformed value of a resource.
  func lacksTransforms(of resource: NameDigest, _ changes: FolderChanges?) -> Bool {
    state.withLock { state in
      guard state.vouches(for: resource, changes) else { return false }
      var lacks = true
      state.entries.resources[resource]?.forEach { member, _ in if member?.isTransform == true { lacks = false } }
      return lacks
    }
  }

  /// Whether there surely is no entry of a resource.
  func lacks(resource: NameDigest, _ changes: FolderChanges?) -> Bool {
    state.withLock { $0.vouches(for: resource, changes) && $0.entries.resources[resource] == nil }
  }

  /// A file was looked for and not found.
  ///
  /// - Returns: whether the files should be listed now: when as many misses had to ask the file system as there are entries, a
  ///   list would have cost no more, so misses and lists together take at most twice what they must.
  func wantsListAfterMiss(_ changes: FolderChanges?) -> Bool {
    state.withLock { state in
      let isBlind = state.listed != changes || state.doubted.count >= EntryIndexState.fewest
      guard let changes, changes.counts.isQuiet, isBlind, !state.isListWanted, state.touched == nil else {
        return false
      }
      state.blindMisses += 1
      guard state.blindMisses >= max(state.entries.count, EntryIndexState.fewest) else { return false }
      state.isListWanted = true
      return true
    }
  }

  /// Whether what others stored meanwhile may have brought the folder a tenth of `limit` beyond what is known of it.
  ///
  /// Others only tell how often they changed something, so their entries are taken to be as large as ours. At least a hundredth
  /// of the limit is stored between two lists, so that small changes of others don't make each store of ours list the folder.
  func wantsList(limit: Int64, _ changes: FolderChanges?) -> Bool {
    state.withLock { state in
      guard state.storedBytes >= limit / 100, state.stores > 0, let changes else { return false }
      guard let listed = state.listed, listed.serial == changes.serial else { return state.storedBytes >= limit / 10 }
      let foreign = changes.counts.started &- listed.counts.started
      guard foreign > 0 else { return false }
      return Double(state.storedBytes) * (1 + Double(foreign) / Double(state.stores)) >= Double(limit) / 10
    }
  }

  /// Bytes and entries; nil when the files must be listed first because nobody did, or because others changed something since.
  func sum(_ changes: FolderChanges?) -> (size: Int64, count: Int)? {
    state.withLock { state in
      guard state.isCurrent(changes), state.doubted.isEmpty else { return nil }
      return (state.entries.total, state.entries.count)
    }
  }

  /// Whether the files were listed, and others have changed nothing since.
  func isCurrent(_ changes: FolderChanges?) -> Bool {
    state.withLock { $0.isCurrent(changes) }
  }

  /// Whether there are names at which nobody knows what lies until the next list.
  var hasDoubts: Bool { state.withLock { !$0.doubted.isEmpty } }

  /// All entries, if that is what lies in the folder; nil while somebody changes something.
  func snapshot(_ changes: FolderChanges?) -> ResourceTable? {
    state.withLock { state in
      guard state.isCurrent(changes), state.placing.isEmpty, state.doubted.isEmpty else { return nil }
      return state.entries
    }
  }

  /// What is known now.
  var known: (size: Int64, count: Int) { state.withLock { ($0.entries.total, $0.entries.count) } }

  func use(_ name: EntryName) -> Use? { state.withLock { $0.entries[name] } }

  /// All entries, the one that was not used for longest first.
  func byLastUse() -> [(name: EntryName, use: Use)] {
    let entries = state.withLock { $0.entries }
    var all: [(name: EntryName, use: Use)] = []
    all.reserveCapacity(entries.count)
    entries.forEach { all.append((name: $0, use: $1)) }
    return all.sorted { ($0.use.last, $0.name.resource) < ($1.use.last, $1.name.resource) }
  }
}
