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

/// The reason why an entry left a store.
public enum EvictionReason: String, Hashable, Sendable, CaseIterable {
  /// The entries exceeded the limit in bytes, or the cost limit in memory.
  case size
  /// The entries exceeded the count limit.
  case count
  /// The entry's time to live had passed.
  case expired
  /// The store was trimmed, by its caller or because of memory pressure.
  case trimmed
  /// The disk was full.
  case fullDisk
  /// Another entry was stored under the same key.
  case replaced
  /// A caller removed the entry.
  case removed
}

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

/// A policy that evicts the least frequently used entry, and the least recently used one among equals. Every operation is O(1).
///
/// All counts are halved after an average of ten uses per entry, so that formerly popular entries do not stay forever. The
/// maximum count is 63.
public struct LeastFrequentlyUsed: EvictionPolicy {
  private struct Frequency {
    var count: UInt8
    /// The number of halvings before this count was written.
    var halvings: UInt32
  }

  private static let most = 63
  private static let usesBeforeHalving = 10

  private var links = SlotLinks()
  private var frequencies: [Frequency] = []
  // One queue for each count. Halving joins the queues in pairs. The counts of the entries are halved when they are read.
  private var queues = [SlotQueue](repeating: SlotQueue(), count: most + 1)
  /// A bit mask of the queues that are not empty.
  private var inUse: UInt64 = 0
  private var halvings: UInt32 = 0
  private var residents = 0
  private var uses = 0

  /// Creates an empty policy.
  public init() {}

  public mutating func insert(_ slot: Int, fingerprint: Int, cost: Int) {
    while frequencies.count <= slot { frequencies.append(Frequency(count: 0, halvings: 0)) }
    residents += 1
    count()
    push(slot, 1)
  }

  public mutating func access(_ slot: Int) {
    count()
    let frequency = frequency(of: slot)
    unlink(slot, frequency)
    push(slot, min(Self.most, frequency + 1))
  }

  public mutating func replace(_ slot: Int, fingerprint: Int, cost: Int) {}

  public mutating func remove(_ slot: Int) {
    unlink(slot, frequency(of: slot))
    residents -= 1
  }

  public mutating func evict(toFit cost: Int) -> Int? {
    guard inUse != 0 else { return nil }
    let slot = Int(queues[inUse.trailingZeroBitCount].oldest)
    remove(slot)
    return slot
  }

  private func frequency(of slot: Int) -> Int {
    let frequency = frequencies[slot]
    return Int(frequency.count) >> min(7, Int(halvings &- frequency.halvings))
  }

  private mutating func push(_ slot: Int, _ frequency: Int) {
    frequencies[slot] = Frequency(count: UInt8(frequency), halvings: halvings)
    links.push(slot, onto: &queues[frequency])
    inUse |= 1 << UInt64(frequency)
  }

  private mutating func unlink(_ slot: Int, _ frequency: Int) {
    links.unlink(slot, from: &queues[frequency])
    if queues[frequency].isEmpty { inUse &= ~(1 << UInt64(frequency)) }
  }

  private mutating func count() {
    uses += 1
    guard uses >= Self.usesBeforeHalving * residents else { return }
    uses = 0
    halvings &+= 1
    inUse = 0
    for frequency in 0...Self.most {
      let half = frequency * 2
      queues[frequency] = half < Self.most ? links.join(queues[half], queues[half + 1]) : SlotQueue()
      if !queues[frequency].isEmpty { inUse |= 1 << UInt64(frequency) }
    }
  }
}

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
