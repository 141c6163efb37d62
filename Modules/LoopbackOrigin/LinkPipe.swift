#if Origin
internal import NIOCore

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
