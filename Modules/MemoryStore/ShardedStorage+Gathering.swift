internal import CacheCore

/// The amount of space that a visit to one shard freed.
private enum ShardContribution {
  case nothing, something, enough
}

extension ShardedStorage {
  /// Frees the space that a new entry needs by evicting from all shards in turn, about as much from each. Returns `false` if that
  /// fails.
  ///
  /// The new entry's shard stays locked. No thread waits for a second lock, because two threads could then deadlock. A busy shard
  /// is skipped and tried again in the next round. Without contention, all shards evict until the space suffices.
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
      var isAnyShardBusy = false
      for step in 0..<shardCount {
        let visited = (first + step) % shardCount
        let contribution =
          visited == number
          ? take(part, for: newEntry, from: &own, sparing: &predecessor, &owned, &left)
          : withShardIfFree(visited) { shard in
            // The slots of another shard are unrelated to the predecessor's.
            var noPredecessor: Int?
            return take(part, for: newEntry, from: &shard, sparing: &noPredecessor, &owned, &left)
          }
        switch contribution {
        case .enough: return true
        case .something: given += 1
        case .nothing: break
        case nil: isAnyShardBusy = true
        }
      }
      guard given > 0 || isAnyShardBusy else { return false }
      if given == 0 {
        roundsLeft -= 1
        HostResources.yield()
      }
      givers = max(1, given)
    }
    return false
  }

  /// Returns the number of rounds that may free nothing. It differs between shards: if two threads block each other's space, one
  /// gives up first, and the other can take its space.
  private func rounds(for number: Int) -> Int { 64 + number }

  private func first(for newEntry: NewEntry, _ number: Int, _ own: borrowing Shard<Policy>) -> Int {
    holdsClearlyLess(own, .size) ? anotherShard(than: number, for: newEntry) : number
  }

  /// Returns the number of bytes that must still be freed.
  private func lack(of newEntry: NewEntry, _ owned: Weight) -> Int {
    newEntry.cost - owned.cost - (budget.limits.cost - budget.cost)
  }

  /// Evicts until `part` bytes are freed, at least one entry.
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
