internal import CacheCore

/// What is known of the entries in memory: how large each is and when it was used last.
///
/// Built from the files in the background, and made again from them before anything is evicted: the files are the truth. What happens to an entry
/// while the files are being listed counts more than what the list says of it.
final class Accounting: Sendable {
  struct Use: Sendable {
    /// Bytes.
    var size: Int64
    var last: Timestamp
  }

  private struct State {
    var uses: [EntryName: Use] = [:]
    var total: Int64 = 0
    /// Entries that changed since the list was begun; nil when none is being made.
    var touched: Set<EntryName>?
    /// Uses of entries that no list has named yet.
    var early: [EntryName: Timestamp] = [:]
    var isComplete = false
    /// As they were when the last list was begun.
    var foreignChanges: Generation.Counts?
    /// Entries, and their bytes, that were stored since then.
    var stores: UInt64 = 0
    var storedBytes: Int64 = 0

    mutating func set(_ name: EntryName, _ use: Use?) {
      let old = uses[name]?.size ?? 0
      uses[name] = use
      total += (use?.size ?? 0) - old
      touched?.insert(name)
    }
  }

  private let state = Lock(State())

  /// An entry was stored.
  ///
  /// - Returns: the sum of all sizes that are known, in bytes.
  @discardableResult
  func stored(_ name: EntryName, size: Int64, at time: Timestamp) -> Int64 {
    state.withLock { state in
      state.set(name, Use(size: size, last: time))
      state.stores += 1
      state.storedBytes += size
      return state.total
    }
  }

  /// Metadata was appended to an entry.
  func resized(_ name: EntryName, size: Int64, at time: Timestamp) {
    state.withLock { $0.set(name, Use(size: size, last: time)) }
  }

  /// Whether what others stored meanwhile may have brought the folder a tenth of `limit` beyond what is known of it.
  ///
  /// Others only tell how often they changed something, so their entries are taken to be as large as ours. At least a hundredth of the limit is stored
  /// between two lists, so that small changes of others don't make each store of ours list the folder.
  func wantsList(limit: Int64, foreignChanges: Generation.Counts?) -> Bool {
    state.withLock { state in
      guard state.storedBytes >= limit / 100, state.stores > 0, let foreignChanges else { return false }
      guard let listed = state.foreignChanges else { return state.storedBytes >= limit / 10 }
      let foreign = foreignChanges.started &- listed.started
      guard foreign > 0 else { return false }
      return Double(state.storedBytes) * (1 + Double(foreign) / Double(state.stores)) >= Double(limit) / 10
    }
  }

  /// An entry was used. One that is not known is not added: it may be gone by now, and the next list will tell.
  func used(_ name: EntryName, at time: Timestamp) {
    state.withLock { state in
      if state.uses[name] != nil {
        state.uses[name]?.last = time
      } else if !state.isComplete || state.touched != nil {
        state.early[name] = time
      }
    }
  }

  func removed(_ name: EntryName) { state.withLock { $0.set(name, nil) } }

  func removedAll() {
    state.withLock { state in
      state.uses = [:]
      state.total = 0
      // A store that came at the same moment may have been counted and swept away, or neither: the files are asked before the next answer.
      state.foreignChanges = nil
    }
  }

  func beginList() {
    state.withLock { state in
      state.touched = []
      state.stores = 0
      state.storedBytes = 0
    }
  }

  /// - Parameter foreignChanges: as they were before the list was begun.
  func endList(_ found: [EntryName: Use], foreignChanges: Generation.Counts?) {
    let old = state.withLock { state in
      var uses = found
      for (name, use) in found {
        // A use is written to the file once a minute at most.
        if let known = state.uses[name]?.last ?? state.early[name], known > use.last { uses[name]?.last = known }
      }
      for name in state.touched ?? [] { uses[name] = state.uses[name] }
      let old = state.uses
      state.uses = uses
      state.total = uses.values.reduce(0) { $0 + $1.size }
      state.touched = nil
      state.early = [:]
      state.isComplete = true
      state.foreignChanges = foreignChanges
      return old
    }
    // Large, and let go of outside the lock.
    withExtendedLifetime(old) {}
  }

  func abandonList() { state.withLock { $0.touched = nil } }

  /// Bytes and entries; nil when the files must be listed first because nobody did, or because others changed something since.
  func sum(foreignChanges: Generation.Counts?) -> (size: Int64, count: Int)? {
    state.withLock { state in
      // A change that was under way while the files were listed may be in the list or not.
      guard state.isComplete, let foreignChanges, foreignChanges.isQuiet, state.foreignChanges == foreignChanges else {
        return nil
      }
      return (state.total, state.uses.count)
    }
  }

  /// What is known now.
  var known: (size: Int64, count: Int) { state.withLock { ($0.total, $0.uses.count) } }

  func use(_ name: EntryName) -> Use? { state.withLock { $0.uses[name] } }

  /// All entries, the one that was not used for longest first.
  func byLastUse() -> [(name: EntryName, use: Use)] {
    let uses = state.withLock { $0.uses }
    return uses.map { (name: $0.key, use: $0.value) }.sorted {
      ($0.use.last, $0.name.resource) < ($1.use.last, $1.name.resource)
    }
  }
}
