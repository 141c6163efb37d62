#if Origin
  /// When each packet leaves a link and arrives: the arithmetic of the pipe, without a socket or a clock.
  ///
  /// Instants are nanoseconds of any monotonic clock. Flows take turns packet by packet. A slot begins where the one before it
  /// ended, however late the caller looks at it, so that late timers do not slow the link down: the rate has no drift.
  struct LinkSchedule {
    /// One turn of one flow. A packet of no bytes takes no time; it marks an event that must keep its place, such as a close.
    struct Packet: Hashable {
      var flow: Int
      var bytes: Int
      /// When it is with the client.
      var arrival: Int64
    }

    /// What Ethernet leaves a TCP segment, in bytes.
    static let packetSize = 1460

    private var rate: Int?
    private(set) var latency: Int64
    /// Where the next slot begins.
    private var nextFree: Int64 = .min
    /// What integer division left over, in units of 1 / rate nanoseconds.
    private var remainder = 0
    private var lastArrival: Int64 = .min
    /// Flows that wait, the next one first; each stands here once.
    private var turns: [Int] = []
    private var firstTurn = 0
    private var queues: [Int: Queue] = [:]
    private var reserved: [Packet] = []

    /// Sizes that wait, with the part of the first that has gone already taken off.
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

    /// When `advance(to:)` has something to do next; nil while nothing waits.
    var nextSlot: Int64? { hasTurns ? nextFree : nil }

    /// Puts bytes at the end of a flow.
    mutating func enqueue(bytes: Int, flow: Int, at now: Int64) {
      reserve(upTo: now)
      if !hasTurns, nextFree < now { (nextFree, remainder) = (now, 0) }
      if queues[flow]?.isEmpty ?? true { turns.append(flow) }
      queues[flow, default: Queue()].sizes.append(max(0, bytes))
    }

    /// The packets whose slots have begun by now, in order of arrival.
    mutating func advance(to now: Int64) -> [Packet] {
      reserve(upTo: now)
      defer { reserved = [] }
      return reserved
    }

    /// From now on the link is another one. Slots that have begun keep their arrival, and nothing overtakes them.
    mutating func change(bitsPerSecond: Int?, latency: Int64, at now: Int64) {
      reserve(upTo: now)
      rate = bitsPerSecond.flatMap { $0 > 0 ? $0 : nil }
      self.latency = max(0, latency)
      remainder = 0
      // The slot under way may have been cut for a far lower rate; the new link is busy for one packet of its own at most.
      nextFree = min(nextFree, now + duration(Self.packetSize))
    }

    /// Forgets what a flow still had to send.
    mutating func remove(flow: Int) {
      guard queues.removeValue(forKey: flow) != nil else { return }
      turns = turns[firstTurn...].filter { $0 != flow }
      firstTurn = 0
    }

    private var hasTurns: Bool { firstTurn < turns.count }

    private mutating func reserve(upTo now: Int64) {
      while hasTurns, nextFree <= now {
        let flow = turns[firstTurn]
        firstTurn += 1
        guard var queue = queues.removeValue(forKey: flow) else { continue }
        let bytes = queue.take(atMost: rate == nil ? .max : Self.packetSize)
        if !queue.isEmpty {
          queues[flow] = queue
          turns.append(flow)
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
