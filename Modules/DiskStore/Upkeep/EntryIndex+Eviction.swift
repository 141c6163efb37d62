internal import CacheCore

/// Which entries leave.
extension EntryIndex {
  /// An entry that was chosen to leave.
  struct Victim: Sendable {
    let name: EntryName
    /// Bytes.
    let size: Int64
    /// When it was used last, as far as was known.
    let last: Timestamp
  }

  /// How many are chosen while nobody else can ask the index.
  private static let chosenAtOnce = 256

  /// Chooses entries to leave, in the policy's order: as many as have `bytes` together, `most` at most. They stay in the index,
  /// and have no place in the order until they are used, replaced or given back.
  func choose(_ bytes: Int64, most: Int) -> [Victim] {
    var victims: [Victim] = []
    var sum: Int64 = 0
    while sum < bytes, victims.count < most {
      let end = min(most, victims.count + Self.chosenAtOnce)
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

  /// Whether others have used nothing that is not known here.
  func knowsUses(_ uses: FolderUses?) -> Bool { state.withLock { $0.listedUses != nil && $0.listedUses == uses } }

  /// Whether nobody here has used, replaced or removed it since. To be asked in its lane.
  func isStillChosen(_ victim: Victim) -> Bool { state.withLock { $0.isChosen(victim.name) } }

  /// What became of a victim, told in its lane.
  func evicted(_ victim: Victim, _ outcome: StoreFolder.EvictionOutcome) {
    state.withLock { state in
      switch outcome {
      case .removed, .absent: state.set(victim.name, nil)
      case .kept(let status): state.settle(victim.name, Use(status))
      case .failed: break
      }
    }
  }

  /// Victims that were not removed have their turn again later.
  func giveBack(_ victims: [Victim]) {
    state.withLock { state in
      for victim in victims where state.isChosen(victim.name) { state.takeIn(victim.name) }
    }
  }
}
