internal import CacheCore

/// How an insertion ended.
struct Insertion {
  /// Nil: the shard has nobody left who could leave, and other shards hold the room.
  var isPlaced: Bool?
  /// What the newcomer owns of the room by then.
  var owned = Weight()
  /// The shard's serial number of removals then.
  var removals = 0
}

extension ShardedStorage {
  /// How often room is looked for in all shards before the newcomer is refused: others may take what they need meanwhile.
  private static var rounds: Int { 64 }

  /// Room is claimed before the newcomer moves in: the bounds hold at every instant.
  func insert(_ newcomer: Newcomer, into shard: inout Shard<Policy>, _ number: Int, _ left: inout Departures) -> Insertion {
    let limits = budget.limits
    guard newcomer.cost <= limits.entryCost, newcomer.cost <= limits.cost, limits.count > 0 else {
      budget.release(shard.remove(newcomer.key, .replaced, left: &left))
      shard.refuse()
      return Insertion(isPlaced: false)
    }
    var predecessor = shard.slot(of: newcomer.key)
    var owned = predecessor.map { shard.weight(of: $0) } ?? Weight()
    while let reason = budget.claim(newcomer.cost, &owned) {
      if let weight = evictElsewhere(reason, for: newcomer, number, shard.cost, shard.count, &left)
        ?? shard.evict(reason, toFit: newcomer.cost, sparing: &predecessor, &left)
      {
        owned += weight
        continue
      }
      _ = shard.remove(newcomer.key, .replaced, left: &left)
      if shardCount > 1 { return Insertion(isPlaced: nil, owned: owned, removals: shard.removals) }
      budget.release(owned)
      shard.refuse()
      return Insertion(isPlaced: false)
    }
    shard.place(newcomer, in: predecessor, left: &left)
    budget.release(Weight(cost: owned.cost - newcomer.cost, count: owned.count - 1))
    return Insertion(isPlaced: true)
  }

  /// Who holds clearly less than its part lets another shard give, if that one holds more: else chance alone would say how much each holds.
  ///
  /// Called while a shard is held, so it never waits for another: two that did would wait for each other.
  private func evictElsewhere(
    _ reason: MemoryCacheCounters.Reason, for newcomer: Newcomer, _ number: Int, _ cost: Int, _ count: Int,
    _ left: inout Departures
  ) -> Weight? {
    guard shardCount > 1 else { return nil }
    let part = Self.share(of: reason == .cost ? budget.limits.cost : budget.limits.count, among: shardCount)
    guard (reason == .cost ? cost : count) < part - part / 8 else { return nil }
    // Any other one; the fingerprint's bits are as good as a draw.
    let other = (number + 1 + Int(UInt(bitPattern: newcomer.key.fingerprint) >> 16) % (shardCount - 1)) % shardCount
    return withShardIfFree(other) { shard in
      (reason == .cost ? shard.cost : shard.count) > part ? shard.evict(reason, toFit: newcomer.cost, &left) : nil
    }.flatMap(\.self)
  }

  /// Makes room in all shards, one after another, and then places the newcomer.
  ///
  /// One at a time, so that two can't keep from each other what they have freed. The newcomer's own shard was open meanwhile: a newcomer whose key has got
  /// another entry, or whose shard was asked to remove something, is outdated, perhaps, and is refused.
  func makeRoomElsewhere(_ newcomer: Newcomer, _ number: Int, _ insertion: Insertion, _ left: inout Departures) -> Bool {
    makingRoom.withLock { _ in
      var owned = insertion.owned
      let hasRoom = makeRoom(for: newcomer, &owned, &left)
      return withShard(number) { shard in
        guard hasRoom, shard.removals == insertion.removals, shard.slot(of: newcomer.key) == nil else {
          owned += shard.remove(newcomer.key, .replaced, left: &left)
          budget.release(owned)
          shard.refuse()
          return false
        }
        shard.place(newcomer, in: nil, left: &left)
        budget.release(Weight(cost: owned.cost - newcomer.cost, count: owned.count - 1))
        return true
      }
    }
  }

  private func makeRoom(for newcomer: Newcomer, _ owned: inout Weight, _ left: inout Departures) -> Bool {
    for _ in 0..<Self.rounds {
      var hasGiven = false
      for number in 0..<shardCount {
        let isEnough = withShard(number) { shard in
          while let reason = budget.claim(newcomer.cost, &owned) {
            guard let weight = shard.evict(reason, toFit: newcomer.cost, &left) else { return false }
            owned += weight
            hasGiven = true
          }
          return true
        }
        if isEnough { return true }
      }
      if !hasGiven { return false }
    }
    return false
  }
}
