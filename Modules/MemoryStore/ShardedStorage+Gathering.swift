internal import CacheCore

/// What a visit to one shard brought.
private enum ShardContribution {
  case nothing, something, enough
}

extension ShardedStorage {
  /// Takes what the newcomer lacks from all shards in turn, about as much from each. False: it is not to be had.
  ///
  /// The newcomer's own shard is held all the while, and nobody waits for a second lock, or two would wait for each other: a
  /// shard that is busy is passed by and asked again in the next round. With nobody else about, all shards give until that is
  /// enough.
  func gather(
    for newEntry: NewEntry, _ number: Int, _ own: inout Shard<Policy>, sparing predecessor: inout Int?, _ owned: inout Weight,
    _ left: inout EvictedEntries
  ) -> Bool {
    var givers = shardCount
    var roundsLeft = rounds(for: number)
    let first = first(for: newEntry, number, own)
    while roundsLeft > 0 {
      let part = lack(of: newEntry, owned) / givers
      var given = 0
      var isSomeoneBusy = false
      for step in 0..<shardCount {
        let visited = (first + step) % shardCount
        let contribution =
          visited == number
          ? take(part, for: newEntry, from: &own, sparing: &predecessor, &owned, &left)
          : withShardIfFree(visited) { shard in
            // Another shard's slots have nothing to do with the predecessor's.
            var nobody: Int?
            return take(part, for: newEntry, from: &shard, sparing: &nobody, &owned, &left)
          }
        switch contribution {
        case .enough: return true
        case .something: given += 1
        case .nothing: break
        case nil: isSomeoneBusy = true
        }
      }
      guard given > 0 || isSomeoneBusy else { return false }
      if given == 0 {
        roundsLeft -= 1
        HostResources.yield()
      }
      givers = max(1, given)
    }
    return false
  }

  /// How many rounds may bring nothing. Another number for each shard: of two that keep from each other what they need, one gives
  /// up first, and what it held is the other's.
  private func rounds(for number: Int) -> Int { 64 + number }

  private func first(for newEntry: NewEntry, _ number: Int, _ own: borrowing Shard<Policy>) -> Int {
    holdsClearlyLess(own, .size) ? other(than: number, for: newEntry) : number
  }

  /// The bytes that must still leave.
  private func lack(of newEntry: NewEntry, _ owned: Weight) -> Int {
    newEntry.cost - owned.cost - (budget.limits.cost - budget.cost)
  }

  /// Evicts until that is `part` bytes, at least one entry.
  private func take(
    _ part: Int, for newEntry: NewEntry, from shard: inout Shard<Policy>, sparing predecessor: inout Int?,
    _ owned: inout Weight, _ left: inout EvictedEntries
  ) -> ShardContribution {
    var contribution = ShardContribution.nothing
    var taken = 0
    while let reason = budget.claim(newEntry.cost, &owned) {
      guard contribution == .nothing || taken < part,
        let weight = shard.evict(reason, toFit: newEntry.cost, sparing: &predecessor, &left)
      else { return contribution }
      owned += weight
      taken += weight.cost
      contribution = .something
    }
    return .enough
  }
}
