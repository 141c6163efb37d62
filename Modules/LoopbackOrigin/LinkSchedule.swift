#if Origin
/// The departure and arrival times of packets on a link, computed without a socket or a clock.
///
/// Times are nanoseconds of any monotonic clock. Flows alternate packet by packet. Each slot begins at the end of the previous
/// one, regardless of the time of the call. Late timers therefore do not slow the link down.
struct LinkSchedule {
  /// One slot of one flow. A packet of zero bytes takes no time. It marks an event that must keep its position, such as a close.
  struct Packet: Hashable {
    var flow: Int
    var bytes: Int
    /// The time at which the client receives the packet.
    var arrival: Int64
  }

  /// The maximum payload of a TCP segment on Ethernet, in bytes.
  static let packetSize = 1460

  private var rate: Int?
  private(set) var latency: Int64
  /// The start of the next slot.
  private var nextFree: Int64 = .min
  /// The remainder of the integer division, in units of 1 / rate nanoseconds.
  private var remainder = 0
  private var lastArrival: Int64 = .min
  /// The flow of the current slot, if it has more to send. It is queued again at the end of the slot, after flows that were added
  /// meanwhile.
  private var served: Int?
  /// The waiting flows in order. Each is listed once.
  private var turns: [Int] = []
  private var firstTurn = 0
  private var queues: [Int: Queue] = [:]
  private var reserved: [Packet] = []

  /// The sizes of waiting items. The sent part of the first one is already subtracted.
  private struct Queue {
    var sizes: [Int] = []
    var first = 0

    var isEmpty: Bool { first == sizes.count }

    mutating func take(atMost limit: Int) -> Int {
      let taken = min(limit, sizes[first])
      sizes[first] -= taken
      if sizes[first] == 0 { first += 1 }
      if first > 64, first * 2 > sizes.count {
        sizes.removeFirst(first)
        first = 0
      }
      return taken
    }
  }

  init(bitsPerSecond: Int?, latency: Int64) {
    rate = bitsPerSecond.flatMap { $0 > 0 ? $0 : nil }
    self.latency = max(0, latency)
  }

  /// The time of the next work for `advance(to:)`, or `nil` if nothing waits.
  var nextSlot: Int64? { hasWork ? nextFree : nil }

  /// Appends bytes to a flow.
  mutating func enqueue(bytes: Int, flow: Int, at now: Int64) {
    reserve(upTo: now)
    if !hasWork, nextFree < now { (nextFree, remainder) = (now, 0) }
    if queues[flow]?.isEmpty ?? true { turns.append(flow) }
    queues[flow, default: Queue()].sizes.append(max(0, bytes))
  }

  /// Returns the packets whose slots have begun by now, in order of arrival.
  mutating func advance(to now: Int64) -> [Packet] {
    reserve(upTo: now)
    defer { reserved = [] }
    return reserved
  }

  /// Changes the properties of the link. Slots that have begun keep their arrival time, and no packet overtakes them.
  mutating func change(bitsPerSecond: Int?, latency: Int64, at now: Int64) {
    reserve(upTo: now)
    rate = bitsPerSecond.flatMap { $0 > 0 ? $0 : nil }
    self.latency = max(0, latency)
    remainder = 0
    // The current slot may be long because of a much lower rate. On the new link it lasts at most one packet.
    nextFree = min(nextFree, now + duration(Self.packetSize))
  }

  /// Discards the unsent bytes of a flow.
  mutating func remove(flow: Int) {
    guard queues.removeValue(forKey: flow) != nil else { return }
    if served == flow { served = nil }
    turns = turns[firstTurn...].filter { $0 != flow }
    firstTurn = 0
  }

  private var hasWork: Bool { served != nil || firstTurn < turns.count }

  private mutating func reserve(upTo now: Int64) {
    while hasWork, nextFree <= now {
      if let flow = served { turns.append(flow) }
      served = nil
      let flow = turns[firstTurn]
      firstTurn += 1
      guard var queue = queues.removeValue(forKey: flow) else { continue }
      let bytes = queue.take(atMost: rate == nil ? .max : Self.packetSize)
      if !queue.isEmpty {
        queues[flow] = queue
        served = flow
      }
      if firstTurn > 64, firstTurn * 2 > turns.count {
        turns.removeFirst(firstTurn)
        firstTurn = 0
      }
      nextFree += duration(bytes)
      lastArrival = max(lastArrival, nextFree + latency)
      reserved.append(Packet(flow: flow, bytes: bytes, arrival: lastArrival))
    }
  }

  private mutating func duration(_ bytes: Int) -> Int64 {
    guard let rate else { return 0 }
    let (nanoseconds, rest) = (bytes * 8_000_000_000 + remainder).quotientAndRemainder(dividingBy: rate)
    remainder = rest
    return Int64(nanoseconds)
  }
}
#endif
