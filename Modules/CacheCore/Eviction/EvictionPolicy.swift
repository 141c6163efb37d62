/// Decides which entry leaves a full store.
///
/// A policy orders numbered slots and knows nothing of keys, values, files or locks: the store calls it inside its critical
/// section. Every call must be quick, and none may be re-entered. A store of several shards gives each a copy.
public protocol EvictionPolicy: Sendable {
  /// What the store, or this shard of it, may hold: bytes and entries, `Int.max` where there is no bound. Told before the first
  /// entry comes.
  mutating func bound(cost: Int, count: Int)
  /// A new entry came to live in `slot`, which is free.
  ///
  /// - Parameters:
  ///   - slot: a small number that stands for the entry until it leaves.
  ///   - fingerprint: a hash of the entry's key, for policies that remember what they evicted.
  ///   - cost: bytes.
  mutating func insert(_ slot: Int, fingerprint: Int, cost: Int)
  /// The entry in `slot` was hit.
  mutating func access(_ slot: Int)
  /// Another entry took the place of the one in `slot`, under the same key. Unless a policy says otherwise: a removal and an
  /// insertion.
  mutating func replace(_ slot: Int, fingerprint: Int, cost: Int)
  /// The entry in `slot` is gone: removed, or expired.
  mutating func remove(_ slot: Int)
  /// Forgets the entry that should leave next, and names its slot; nil when none should: a newcomer that finds no room then is
  /// refused.
  ///
  /// - Parameter cost: what room is made for, in bytes; 0 when the store just shrinks.
  mutating func evict(toFit cost: Int) -> Int?
}

extension EvictionPolicy {
  /// Does nothing.
  public mutating func bound(cost: Int, count: Int) {}

  /// Removes and inserts.
  public mutating func replace(_ slot: Int, fingerprint: Int, cost: Int) {
    remove(slot)
    insert(slot, fingerprint: fingerprint, cost: cost)
  }
}
