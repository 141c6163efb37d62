/// A policy that decides which entry a full store evicts.
///
/// A policy orders numbered slots. It knows no keys, values, files or locks. The store calls it inside its critical section, so
/// every call must be quick and must not call the store. A sharded store gives each shard its own copy.
///
/// A store never evicts an entry for itself, whatever its policy returns. `MemoryCache` evicts before it inserts. `DiskCache`
/// asks for another slot, and gives the entry back with ``spare(_:fingerprint:cost:)``.
public protocol EvictionPolicy: Sendable {
  /// Receives the limits of the store, or of its shard, before the first insertion. A limit is `Int.max` if there is none.
  mutating func bound(cost: Int, count: Int)
  /// Records a new entry in `slot`, which is free.
  ///
  /// - Parameters:
  ///   - slot: A small number that identifies the entry until it leaves.
  ///   - fingerprint: A hash of the entry's key, for policies that remember evicted entries.
  ///   - cost: The cost of the entry, in bytes.
  mutating func insert(_ slot: Int, fingerprint: Int, cost: Int)
  /// Records a hit of the entry in `slot`.
  mutating func access(_ slot: Int)
  /// Records that the entry in `slot` was replaced by another one under the same key. The default is a removal and an insertion.
  mutating func replace(_ slot: Int, fingerprint: Int, cost: Int)
  /// Records that the entry in `slot` was removed or has expired.
  mutating func remove(_ slot: Int)
  /// Forgets the next entry to evict and returns its slot. If it returns `nil`, nothing is evicted and a new entry that needs the
  /// space is refused.
  ///
  /// - Parameter cost: The cost of the new entry, in bytes, or 0 if the store only shrinks.
  mutating func evict(toFit cost: Int) -> Int?
  /// Records that an entry which ``evict(toFit:)`` has chosen stays in the store, in `slot`, because it was just stored. The
  /// entry does not count as one that returns. The default is an insertion.
  mutating func spare(_ slot: Int, fingerprint: Int, cost: Int)
}

extension EvictionPolicy {
  /// Does nothing.
  public mutating func bound(cost: Int, count: Int) {}

  /// Inserts the entry as a new one.
  public mutating func spare(_ slot: Int, fingerprint: Int, cost: Int) { insert(slot, fingerprint: fingerprint, cost: cost) }

  /// Removes the slot and inserts it again.
  public mutating func replace(_ slot: Int, fingerprint: Int, cost: Int) {
    remove(slot)
    insert(slot, fingerprint: fingerprint, cost: cost)
  }
}
