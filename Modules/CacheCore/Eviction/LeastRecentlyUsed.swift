/// A policy that evicts the least recently used entry. Every operation is O(1).
public struct LeastRecentlyUsed: EvictionPolicy {
  private var links = SlotLinks()
  private var queue = SlotQueue()

  /// Creates an empty policy.
  public init() {}

  public mutating func insert(_ slot: Int, fingerprint: Int, cost: Int) { links.push(slot, onto: &queue) }

  public mutating func access(_ slot: Int) {
    guard queue.newest != slot else { return }
    links.unlink(slot, from: &queue)
    links.push(slot, onto: &queue)
  }

  public mutating func replace(_ slot: Int, fingerprint: Int, cost: Int) { access(slot) }

  public mutating func remove(_ slot: Int) { links.unlink(slot, from: &queue) }

  public mutating func evict(toFit cost: Int) -> Int? { links.popOldest(of: &queue) }
}
