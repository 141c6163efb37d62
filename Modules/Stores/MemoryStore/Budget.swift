internal import Synchronization

/// A number of bytes and entries.
struct Weight {
  var cost = 0
  var count = 0

  static func += (a: inout Weight, b: Weight) {
    a.cost += b.cost
    a.count += b.count
  }
}

/// The total weight of a store's shards, and its limits.
///
/// Space is claimed before an entry is inserted and released after it has left, so the sums are never less than the actual
/// weight. A claim that would exceed a limit fails, so the sums are never more than the limits, whatever other shards do. Space
/// that an eviction frees remains claimed by the evicting thread until it inserts the new entry, so no other thread can take it.
struct Budget: ~Copyable {
  let limits: MemoryCache.Limits
  private let claimedCost = Atomic(0)
  private let claimedCount = Atomic(0)

  init(_ limits: MemoryCache.Limits) { self.limits = limits }

  var cost: Int { claimedCost.load(ordering: .relaxed) }
  var count: Int { claimedCount.load(ordering: .relaxed) }

  /// Raises `owned` to one entry of `cost` bytes. Returns `nil` on success, or the limit that prevents it. What was claimed until
  /// then remains in `owned`.
  func claim(_ cost: Int, _ owned: inout Weight) -> EvictionReason? {
    if owned.cost < cost {
      guard Self.raise(claimedCost, by: cost - owned.cost, within: limits.cost) else { return .size }
      owned.cost = cost
    }
    if owned.count < 1 {
      guard Self.raise(claimedCount, by: 1, within: limits.count) else { return .count }
      owned.count = 1
    }
    return nil
  }

  func release(_ weight: Weight) {
    if weight.cost > 0 { claimedCost.subtract(weight.cost, ordering: .relaxed) }
    if weight.count > 0 { claimedCount.subtract(weight.count, ordering: .relaxed) }
  }

  private static func raise(_ sum: borrowing Atomic<Int>, by amount: Int, within bound: Int) -> Bool {
    var current = sum.load(ordering: .relaxed)
    while current <= bound - amount {
      let (isDone, seen) = sum.weakCompareExchange(expected: current, desired: current + amount, ordering: .relaxed)
      if isDone { return true }
      current = seen
    }
    return false
  }
}
