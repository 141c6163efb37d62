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
