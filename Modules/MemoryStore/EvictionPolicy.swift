/// Decides which entry leaves a full ``MemoryCache``.
///
/// A policy orders numbered slots and knows nothing of keys and values, so it needs no locking (the cache calls it inside its critical section)
/// and no hashing. Every call must be quick; none may be re-entered.
public protocol EvictionPolicy: Sendable {
  /// A new entry came to live in `slot`, which is free.
  ///
  /// - Parameters:
  ///   - slot: a small number that stands for the entry until its removal.
  ///   - fingerprint: a hash of the entry's key, for policies that remember what they evicted.
  ///   - cost: bytes.
  mutating func insert(_ slot: Int, fingerprint: Int, cost: Int)
  /// The entry in `slot` was hit.
  mutating func access(_ slot: Int)
  /// The entry in `slot` is gone, whatever the reason.
  mutating func remove(_ slot: Int)
  /// The slot whose entry should leave next, or nil when none should: a newcomer that finds no room then is refused. Does not remove it.
  mutating func victim() -> Int?
}
