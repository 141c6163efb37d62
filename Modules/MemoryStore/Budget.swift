internal import Synchronization

/// Bytes and entries.
struct Weight {
  var cost = 0
  var count = 0

  static func += (a: inout Weight, b: Weight) {
    a.cost += b.cost
    a.count += b.count
  }
}

/// What all shards of a store hold together, and may hold.
///
/// Room is claimed before an entry moves in and released after it is out, so the sums are never less than what is held; and a
/// claim that would pass a bound is not made, so they are never more than the bounds: no shard can overshoot, whatever the others
/// do. What an evictor frees stays claimed, as its own, until its newcomer has taken it over: nobody else can snatch it.
struct Budget: ~Copyable {
  let limits: MemoryCache.Limits
  private let claimedCost = Atomic(0)
  private let claimedCount = Atomic(0)

  init(_ limits: MemoryCache.Limits) { self.limits = limits }

  var cost: Int { claimedCost.load(ordering: .relaxed) }
  var count: Int { claimedCount.load(ordering: .relaxed) }

  /// Raises what is `owned` to one entry of `cost` bytes. Nil: done. Else the bound that is in the way; what was claimed until
  /// then is owned.
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
