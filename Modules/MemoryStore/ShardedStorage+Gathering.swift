internal import CacheCore

/// What a visit to one shard brought.
private enum Gift {
  case nothing, something, enough
}

extension ShardedStorage {
  /// Takes what the newcomer lacks from all shards in turn, about as much from each. False: it is not to be had.
  ///
  /// The newcomer's own shard is held all the while, and nobody waits for a second lock, or two would wait for each other: a
  /// shard that is busy is passed by and asked again in the next round. With nobody else about, all shards give until that is
  /// enough.
  func gather(
    for newcomer: Newcomer, _ number: Int, _ own: inout Shard<Policy>, sparing predecessor: inout Int?, _ owned: inout Weight,
    _ left: inout Departures
  ) -> Bool {
    var givers = shardCount
    var roundsLeft = rounds(for: number)
    let first = first(for: newcomer, number, own)
    while roundsLeft > 0 {
      let part = lack(of: newcomer, owned) / givers
      var given = 0
      var isSomeoneBusy = false
      for step in 0..<shardCount {
        let visited = (first + step) % shardCount
        let gift =
          visited == number
          ? take(part, for: newcomer, from: &own, sparing: &predecessor, &owned, &left)
          : withShardIfFree(visited) { shard in
            // Another shard's slots have nothing to do with the predecessor's.
            var nobody: Int?
            return take(part, for: newcomer, from: &shard, sparing: &nobody, &owned, &left)
          }
        switch gift {
        case .enough: return true
        case .something: given += 1
        case .nothing: break
        case nil: isSomeoneBusy = true
        }
      }
      guard given > 0 || isSomeoneBusy else { return false }
      if given == 0 {
        roundsLeft -= 1
        Machine.yield()
      }
      givers = max(1, given)
    }
    return false
  }

  /// How many rounds may bring nothing. Another number for each shard: of two that keep from each other what they need, one gives
  /// up first, and what it held is the other's.
  private func rounds(for number: Int) -> Int { 64 + number }

  private func first(for newcomer: Newcomer, _ number: Int, _ own: borrowing Shard<Policy>) -> Int {
    holdsClearlyLess(own, .cost) ? other(than: number, for: newcomer) : number
  }

  /// The bytes that must still leave.
  private func lack(of newcomer: Newcomer, _ owned: Weight) -> Int {
    newcomer.cost - owned.cost - (budget.limits.cost - budget.cost)
  }

  /// Evicts until that is `part` bytes, at least one entry.
  private func take(
    _ part: Int, for newcomer: Newcomer, from shard: inout Shard<Policy>, sparing predecessor: inout Int?,
    _ owned: inout Weight, _ left: inout Departures
  ) -> Gift {
    var gift = Gift.nothing
    var taken = 0
    while let reason = budget.claim(newcomer.cost, &owned) {
      guard gift == .nothing || taken < part,
        let weight = shard.evict(reason, toFit: newcomer.cost, sparing: &predecessor, &left)
      else { return gift }
      owned += weight
      taken += weight.cost
      gift = .something
    }
    return .enough
  }
}
