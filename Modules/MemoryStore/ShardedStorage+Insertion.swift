internal import CacheCore

extension ShardedStorage {
  /// Inserts a new entry after claiming its space, so that the limits hold at every instant.
  ///
  /// Everything happens in one critical section of the new entry's shard. Otherwise the insertion could undo a removal that
  /// happened in between.
  func insert(
    _ entry: MemoryEntry, for key: CacheKey, _ newEntry: NewEntry, into shard: inout Shard<Policy>, _ number: Int,
    _ left: inout EvictedEntries
  ) -> Bool {
    let limits = budget.limits
    guard newEntry.cost <= limits.entryCost, newEntry.cost <= limits.cost, limits.count > 0 else {
      budget.release(shard.remove(key, .replaced, left: &left))
      shard.refuse()
      return false
    }
    var predecessor = shard.slot(of: key)
    var owned = predecessor.map { shard.weight(of: $0) } ?? Weight()
    while let reason = budget.claim(newEntry.cost, &owned) {
      if !isLarge(newEntry, reason),
        let weight = evictElsewhere(reason, for: newEntry, number, shard, &left)
          ?? shard.evict(reason, toFit: newEntry.cost, sparing: &predecessor, &left)
      {
        owned += weight
        continue
      }
      if shardCount > 1, gather(for: newEntry, number, &shard, sparing: &predecessor, &owned, &left) { break }
      _ = shard.remove(key, .replaced, left: &left)
      budget.release(owned)
      shard.refuse()
      return false
    }
    shard.place(entry, for: key, newEntry, in: predecessor, left: &left)
    budget.release(Weight(cost: owned.cost - newEntry.cost, count: owned.count - 1))
    return true
  }

  /// Returns whether an entry exceeds an eighth of its shard's share. Evicting for it from this shard alone would remove entries
  /// in use.
  private func isLarge(_ newEntry: NewEntry, _ reason: EvictionReason) -> Bool {
    shardCount > 1 && reason == .size && newEntry.cost > Self.share(of: budget.limits.cost, among: shardCount) / 8
  }

  /// Returns the weight of a shard and its share of the limit that `reason` refers to.
  private func filling(_ shard: borrowing Shard<Policy>, _ reason: EvictionReason) -> (held: Int, part: Int) {
    reason == .size
      ? (shard.cost, Self.share(of: budget.limits.cost, among: shardCount))
      : (shard.count, Self.share(of: budget.limits.count, among: shardCount))
  }

  func holdsClearlyLess(_ shard: borrowing Shard<Policy>, _ reason: EvictionReason) -> Bool {
    let (held, part) = filling(shard, reason)
    return held < part - part / 8
  }

  /// Returns any other shard. The bits of the fingerprint serve as a random choice.
  func anotherShard(than number: Int, for newEntry: NewEntry) -> Int {
    (number + 1 + Int(UInt(bitPattern: newEntry.fingerprint) >> 16) % (shardCount - 1)) % shardCount
  }

  /// Evicts from another shard if this one is clearly below its share and the other one exceeds its share. Otherwise, the
  /// distribution between shards would depend on chance.
  private func evictElsewhere(
    _ reason: EvictionReason, for newEntry: NewEntry, _ number: Int, _ own: borrowing Shard<Policy>,
    _ left: inout EvictedEntries
  ) -> Weight? {
    guard shardCount > 1, holdsClearlyLess(own, reason) else { return nil }
    return withShardIfFree(anotherShard(than: number, for: newEntry)) { shard in
      let (held, part) = filling(shard, reason)
      return held > part ? shard.evict(reason, toFit: newEntry.cost, &left) : nil
    }.flatMap(\.self)
  }
}
