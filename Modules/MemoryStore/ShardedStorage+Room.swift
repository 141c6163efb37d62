internal import CacheCore

extension ShardedStorage {
  /// Room is claimed before the newcomer moves in: the bounds hold at every instant.
  ///
  /// All in one critical section of the newcomer's shard: a removal that came between would be undone by the newcomer.
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

  /// An eighth of its shard's part, and more: the shard would lose what is in use if it gave that alone.
  private func isLarge(_ newEntry: NewEntry, _ reason: EvictionReason) -> Bool {
    shardCount > 1 && reason == .size && newEntry.cost > Self.share(of: budget.limits.cost, among: shardCount) / 8
  }

  /// What a shard holds and may hold of what `reason` counts.
  private func filling(_ shard: borrowing Shard<Policy>, _ reason: EvictionReason) -> (held: Int, part: Int) {
    reason == .size
      ? (shard.cost, Self.share(of: budget.limits.cost, among: shardCount))
      : (shard.count, Self.share(of: budget.limits.count, among: shardCount))
  }

  func holdsClearlyLess(_ shard: borrowing Shard<Policy>, _ reason: EvictionReason) -> Bool {
    let (held, part) = filling(shard, reason)
    return held < part - part / 8
  }

  /// Any other shard; the fingerprint's bits are as good as a draw.
  func other(than number: Int, for newEntry: NewEntry) -> Int {
    (number + 1 + Int(UInt(bitPattern: newEntry.fingerprint) >> 16) % (shardCount - 1)) % shardCount
  }

  /// Who holds clearly less than its part lets another shard give, if that one holds more: else chance alone would say how much
  /// each holds.
  private func evictElsewhere(
    _ reason: EvictionReason, for newEntry: NewEntry, _ number: Int, _ own: borrowing Shard<Policy>,
    _ left: inout EvictedEntries
  ) -> Weight? {
    guard shardCount > 1, holdsClearlyLess(own, reason) else { return nil }
    return withShardIfFree(other(than: number, for: newEntry)) { shard in
      let (held, part) = filling(shard, reason)
      return held > part ? shard.evict(reason, toFit: newEntry.cost, &left) : nil
    }.flatMap(\.self)
  }
}
