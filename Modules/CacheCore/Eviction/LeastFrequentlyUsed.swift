/// Evicts the entry that was used least often, the one that is used least recently among equals. Every operation is O(1).
///
/// Uses age: after ten uses for each entry all counts are halved, so that what was popular once does not stay for ever. Counts
/// end at 63.
public struct LeastFrequentlyUsed: EvictionPolicy {
  private struct Frequency {
    var count: UInt8
    /// How often all counts had been halved when this one was written.
    var halvings: UInt32
  }

  private static let most = 63
  private static let usesBeforeHalving = 10

  private var links = SlotLinks()
  private var frequencies: [Frequency] = []
  // A queue for each count. Halving joins them in pairs; the counts that entries carry are halved when they are read.
  private var queues = [SlotQueue](repeating: SlotQueue(), count: most + 1)
  /// A bit for each queue that is not empty.
  private var inUse: UInt64 = 0
  private var halvings: UInt32 = 0
  private var residents = 0
  private var uses = 0

  /// An empty order.
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
