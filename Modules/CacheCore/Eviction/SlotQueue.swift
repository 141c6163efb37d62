/// The ends of a queue of slots. ``SlotLinks`` stores the links between them.
struct SlotQueue: Sendable {
  var oldest: Int32 = -1
  var newest: Int32 = -1

  var isEmpty: Bool { oldest < 0 }
}

/// Doubly linked queues in one array. The links are slot numbers, so an entry needs no allocation and a hit touches no reference
/// count.
struct SlotLinks: Sendable {
  private struct Link {
    var older: Int32
    var newer: Int32
  }

  private var links: [Link] = []

  mutating func push(_ slot: Int, onto queue: inout SlotQueue) {
    while links.count <= slot { links.append(Link(older: -1, newer: -1)) }
    let slot = Int32(slot)
    links[Int(slot)] = Link(older: queue.newest, newer: -1)
    if queue.isEmpty { queue.oldest = slot } else { links[Int(queue.newest)].newer = slot }
    queue.newest = slot
  }

  mutating func unlink(_ slot: Int, from queue: inout SlotQueue) {
    let link = links[slot]
    if link.older >= 0 { links[Int(link.older)].newer = link.newer } else { queue.oldest = link.newer }
    if link.newer >= 0 { links[Int(link.newer)].older = link.older } else { queue.newest = link.older }
  }

  mutating func popOldest(of queue: inout SlotQueue) -> Int? {
    guard !queue.isEmpty else { return nil }
    let slot = Int(queue.oldest)
    unlink(slot, from: &queue)
    return slot
  }

  /// Returns a queue with the slots of `older`, followed by those of `newer`.
  mutating func join(_ older: SlotQueue, _ newer: SlotQueue) -> SlotQueue {
    guard !older.isEmpty, !newer.isEmpty else { return older.isEmpty ? newer : older }
    links[Int(older.newest)].newer = newer.oldest
    links[Int(newer.oldest)].older = older.newest
    return SlotQueue(oldest: older.oldest, newest: newer.newest)
  }
}
