#if Origin
internal import NIOCore

/// The simulated link between an origin and its clients, shared by all connections.
public struct NetworkLink: Sendable, Hashable {
  /// The rate from the origin to the clients in bits per second, shared by all connections. It is unlimited if `nil` or not
  /// positive.
  public var bitsPerSecond: Int?
  /// The one-way latency in each direction. A round trip takes twice as long. A new connection needs an additional round trip.
  public var latency: Duration

  var isOffline = false

  /// Creates a link that is up.
  public init(bitsPerSecond: Int? = nil, latency: Duration = .zero) {
    (self.bitsPerSecond, self.latency) = (bitsPerSecond, latency)
  }

  /// A link that is down. Open connections are reset at once, new ones when they are accepted.
  public static var offline: Self {
    var link = Self()
    link.isOffline = true
    return link
  }
}

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

  private var rate: Int64?
  private(set) var latency: Int64
  /// The start of the next slot.
  private var nextFree: Int64 = .min
  /// The remainder of the integer division, in units of 1 / rate nanoseconds.
  private var remainder: Int64 = 0
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
    rate = bitsPerSecond.flatMap { $0 > 0 ? Int64($0) : nil }
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
    rate = bitsPerSecond.flatMap { $0 > 0 ? Int64($0) : nil }
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
    let (nanoseconds, rest) = (Int64(bytes) * 8_000_000_000 + remainder).quotientAndRemainder(dividingBy: rate)
    remainder = rest
    return nanoseconds
  }
}

/// The pipe that all connections of an origin share, and its list of connections. Used on its event loop only.
final class LinkPipe {
  private let loop: any EventLoop
  private var link: NetworkLink?
  private var schedule = LinkSchedule(bitsPerSecond: nil, latency: 0)
  private var ends: [Int: ConnectionLink] = [:]
  /// The packets in transit, in order of arrival.
  private var inFlight: CircularBuffer<(arrival: Int64, end: ConnectionLink, item: ConnectionLink.Item)> = []
  private var timer: Scheduled<Void>?
  private var timerInstant: Int64 = .max
  private(set) var isStopped = false

  init(loop: any EventLoop, link: NetworkLink?) {
    self.loop = loop
    apply(link)
  }

  var isOffline: Bool { link?.isOffline ?? false }
  var isShaped: Bool { link != nil }
  /// The one-way latency in nanoseconds.
  var latency: Int64 { schedule.latency }

  static var now: Int64 { Int64(NIODeadline.now().uptimeNanoseconds) }

  // MARK: Connections

  func add(_ end: ConnectionLink, as flow: Int) { ends[flow] = end }

  func remove(flow: Int) {
    ends[flow] = nil
    schedule.remove(flow: flow)
  }

  // MARK: The link

  func setLink(_ link: NetworkLink?) {
    apply(link)
    if isOffline {
      for end in ends.values { end.abort() }
    }
    wake()
  }

  private func apply(_ link: NetworkLink?) {
    self.link = link
    let latency = (link?.latency ?? .zero).components
    let (nanoseconds, overflow) = latency.seconds.multipliedReportingOverflow(by: 1_000_000_000)
    // A latency of centuries would overflow the sums, so it is limited to a year.
    let bounded = overflow ? Int64.max : nanoseconds.addingReportingOverflow(latency.attoseconds / 1_000_000_000).partialValue
    schedule.change(bitsPerSecond: link?.bitsPerSecond, latency: min(bounded, 31_536_000_000_000_000), at: Self.now)
  }

  // MARK: Packets

  func enqueue(bytes: Int, flow: Int) { schedule.enqueue(bytes: bytes, flow: flow, at: Self.now) }

  /// Delivers packets that have arrived, starts those that may start, and sets the timer for the next event. The timer uses
  /// absolute times of the schedule, so that delays do not accumulate.
  func wake() {
    let now = Self.now
    for packet in schedule.advance(to: now) {
      guard let end = ends[packet.flow], let item = end.take(packet.bytes) else { continue }
      inFlight.append((packet.arrival, end, item))
    }
    var touched: [ObjectIdentifier: ConnectionLink] = [:]
    while let first = inFlight.first, first.arrival <= now {
      inFlight.removeFirst()
      first.end.deliver(first.item)
      touched[ObjectIdentifier(first.end)] = first.end
    }
    for end in touched.values { end.drain() }
    setTimer()
  }

  private func setTimer() {
    let next = min(schedule.nextSlot ?? .max, inFlight.first?.arrival ?? .max)
    guard next != timerInstant || timer == nil else { return }
    timer?.cancel()
    (timer, timerInstant) = (nil, next)
    guard next != .max, !isStopped else { return }
    timer = loop.assumeIsolated().scheduleTask(deadline: .uptimeNanoseconds(UInt64(max(0, next)))) {
      self.timer = nil
      self.wake()
    }
  }

  // MARK: The end

  /// Closes every connection at once.
  func stop() -> [EventLoopFuture<Void>] {
    isStopped = true
    timer?.cancel()
    (timer, timerInstant) = (nil, .max)
    inFlight = []
    return ends.values.compactMap { $0.closeNow() }
  }
}
#endif
