/// Evicts the entry that was not used for the longest time. Every operation is O(1).
public struct LeastRecentlyUsed: EvictionPolicy {
  private struct Link {
    var previous: Int32
    var next: Int32
  }

  // A doubly linked list through an array: slot numbers are the links, so a hit touches no reference count.
  private var links: [Link] = []
  private var newest: Int32 = -1
  private var oldest: Int32 = -1

  /// An empty order.
  public init() {}

  public mutating func insert(_ slot: Int, fingerprint: Int, cost: Int) {
    while links.count <= slot { links.append(Link(previous: -1, next: -1)) }
    pushNewest(Int32(slot))
  }

  public mutating func access(_ slot: Int) {
    guard newest != slot else { return }
    unlink(Int32(slot))
    pushNewest(Int32(slot))
  }

  public mutating func remove(_ slot: Int) { unlink(Int32(slot)) }

  public mutating func evict(toFit cost: Int) -> Int? {
    guard oldest >= 0 else { return nil }
    let slot = Int(oldest)
    unlink(oldest)
    return slot
  }

  private mutating func pushNewest(_ slot: Int32) {
    links[Int(slot)] = Link(previous: -1, next: newest)
    if newest >= 0 { links[Int(newest)].previous = slot } else { oldest = slot }
    newest = slot
  }

  private mutating func unlink(_ slot: Int32) {
    let link = links[Int(slot)]
    if link.previous >= 0 { links[Int(link.previous)].next = link.next } else { newest = link.next }
    if link.next >= 0 { links[Int(link.next)].previous = link.previous } else { oldest = link.previous }
  }
}
