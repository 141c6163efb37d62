internal import CacheCore

/// The choice of entries to evict.
extension EntryIndex {
  /// An entry chosen for eviction.
  struct Victim: Sendable {
    let name: EntryName
    /// The space in bytes that the eviction frees, with the resource's folder if it has no other entry.
    let size: Int64
    /// The time of the last known use.
    let last: Timestamp
  }

  /// The number of entries chosen while the index is locked.
  private static let choiceBatch = 256

  /// Chooses entries to evict in the policy's order, until they have `bytes` bytes in total or `most` are chosen. They stay in
  /// the index but leave the order until they are used, replaced or given back.
  func choose(_ bytes: Int64, most: Int) -> [Victim] {
    var victims: [Victim] = []
    var sum: Int64 = 0
    while sum < bytes, victims.count < most {
      let end = min(most, victims.count + Self.choiceBatch)
      let count = victims.count
      state.withLock { state in
        while sum < bytes, victims.count < end, let victim = state.chooseNext() {
          victims.append(victim)
          sum += victim.size
        }
      }
      if victims.count == count { break }
    }
    return victims
  }

  /// Whether all uses by other caches are known.
  func knowsUses(_ uses: FolderUses?) -> Bool { state.withLock { $0.listedUses != nil && $0.listedUses == uses } }

  /// Whether this cache has not used, replaced or removed the entry since. Call it in the entry's lane.
  func isStillChosen(_ victim: Victim) -> Bool { state.withLock { $0.isChosen(victim.name) } }

  /// Records the outcome of an eviction, in the entry's lane.
  func evicted(_ victim: Victim, _ outcome: StoreFolder.BatchRemoval) {
    state.withLock { state in
      switch outcome {
      case .removed, .absent: state.set(victim.name, nil)
      case .kept(let status): state.settle(victim.name, Use(status))
      case .failed: break
      }
    }
  }

  /// Puts entries that were not removed back into the order.
  func giveBack(_ victims: [Victim]) {
    state.withLock { state in
      for victim in victims where state.isChosen(victim.name) { state.takeIn(victim.name) }
    }
  }
}
