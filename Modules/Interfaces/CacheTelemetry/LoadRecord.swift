public import CacheCore

/// A record of one load: its start, its result and its phases. It is delivered when all work of the load has ended.
public struct LoadRecord: Sendable {
  /// The identifier of the load.
  public var load: LoadID
  /// The URL of the load.
  public var url: LoadURL
  /// The time at which the load started.
  public var startedAt: Timestamp
  /// The time from the start to the result.
  public var duration: Duration
  /// The source of the result, or `nil` if there is none.
  public var source: ResourceSource?
  /// The error because of which the result is a stored response that could not be confirmed, or `nil`.
  public var fallbackReason: CacheError?
  /// The error of the load. A cancellation is not a failure.
  public var error: CacheError?
  /// The load that this one joined. That load has the transfer in its record.
  public var joined: LoadID?
  /// Whether a store satisfied the load without waiting.
  public var isHit = false
  /// The phases of the load. Requests are in the order in which they were sent. The other phases are inserted in the
  /// order in which they ended. Phases can overlap. They can end after the result: a background revalidation, a commit
  /// to a slow store, a body that an HTTP caller still reads.
  public var phases: [Phase] = []

  /// Creates a record from its parts, for tests.
  public init(
    load: LoadID, url: LoadURL, startedAt: Timestamp, duration: Duration, source: ResourceSource? = nil,
    fallbackReason: CacheError? = nil, error: CacheError? = nil, joined: LoadID? = nil, isHit: Bool = false, phases: [Phase] = []
  ) {
    self.load = load
    self.url = url
    self.startedAt = startedAt
    self.duration = duration
    self.source = source
    self.fallbackReason = fallbackReason
    self.error = error
    self.joined = joined
    self.isHit = isHit
    self.phases = phases
  }

  /// A timed part of a load.
  public struct Phase: Sendable {
    /// The offset of the phase from the start of the load.
    public var start: Duration
    /// The duration of the phase.
    public var duration: Duration
    /// The kind of work and its details.
    public var work: Work

    /// Creates a phase from its parts, for tests.
    public init(start: Duration, duration: Duration, work: Work) {
      self.start = start
      self.duration = duration
      self.work = work
    }
  }

  /// The work of a phase.
  public enum Work: Sendable {
    /// A request to the origin, from the call of the downloader to the last byte of the body.
    case transfer(Transfer)
    /// The creation of a value, or the decoding of a stored value.
    case transform(ValueOrigin)
    /// The commit of an entry to the durable store, with its number of bytes.
    case store(bytes: Int64)
  }

  /// A request to the origin and its response.
  public struct Transfer: Sendable {
    /// The URL of the request, which changes with a redirect.
    public var url: LoadURL
    /// Whether the request revalidates a stored response.
    public var isConditional: Bool
    /// The status of the response, or `nil` if none was received.
    public var status: Int?
    /// The metrics of the transfer.
    public var metrics: TransferMetrics
    /// The error of the transfer.
    public var error: CacheError?

    /// Creates a transfer from its parts, for tests.
    public init(
      url: LoadURL, isConditional: Bool, status: Int? = nil, metrics: TransferMetrics = TransferMetrics(),
      error: CacheError? = nil
    ) {
      self.url = url
      self.isConditional = isConditional
      self.status = status
      self.metrics = metrics
      self.error = error
    }
  }

  /// The requests of the load and their responses, in the order of the requests.
  public var transfers: [Transfer] {
    phases.compactMap { phase in
      if case .transfer(let transfer) = phase.work { transfer } else { nil }
    }
  }

  /// The number of body bytes received from the network.
  public var bytesOnWire: Int64 { transfers.reduce(0) { $0 + $1.metrics.bytesOnWire } }
}

/// A collector that builds a record from the events of each load and delivers it when all work of the load has ended.
final class LoadRecorder: Sendable {
  /// A load with unfinished work.
  private struct OpenLoad {
    var record: LoadRecord
    /// The uptime at which the load started.
    var start: Duration
    var notes: [(any Sendable)?]
    /// The indices of the running transfers in the phases, by transfer number.
    var transfers: [Int: Int] = [:]

    /// Appends a phase that ended just now.
    mutating func append(_ work: LoadRecord.Work, _ duration: Duration, endingAt now: Duration) {
      record.phases.append(.init(start: now - start - duration, duration: duration, work: work))
    }

    mutating func begin(_ number: Int, _ transfer: LoadRecord.Transfer, at now: Duration) {
      transfers[number] = record.phases.count
      record.phases.append(.init(start: now - start, duration: .zero, work: .transfer(transfer)))
    }

    mutating func change(_ number: Int, at now: Duration, _ change: (inout LoadRecord.Transfer) -> Void) {
      guard let index = transfers[number], case .transfer(var transfer) = record.phases[index].work else { return }
      change(&transfer)
      record.phases[index].work = .transfer(transfer)
      record.phases[index].duration = now - start - record.phases[index].start
    }
  }

  private struct State {
    var open: [LoadID: OpenLoad] = [:]
    var waiters: [Resumption<Void>] = []
  }

  private let receivers: [Telemetry.Outlet.Records]
  private let clock: any CacheClock
  private let state = Lock(State())

  init(_ receivers: [Telemetry.Outlet.Records], clock: any CacheClock) {
    self.receivers = receivers
    self.clock = clock
  }

  /// Returns when every record has been delivered.
  func idle() async {
    await withResumption { continuation in
      let isIdle = state.withLock { state in
        if !state.open.isEmpty { state.waiters.append(continuation) }
        return state.open.isEmpty
      }
      if isIdle { continuation.resume() }
    }
  }

  func receive(_ event: CacheEvent, of load: LoadID) {
    switch event {
    case .hit(let url, let source, let duration): hit(load, url, source, duration)
    case .started(let url): begin(load, url)
    case .joined(_, let other): change(load) { load, _ in load.record.joined = other }
    case .requestSent(let url, _, let isConditional, let number):
      change(load) { load, now in load.begin(number, .init(url: url, isConditional: isConditional), at: now) }
    case .responseReceived(_, let status, let number):
      change(load) { load, now in load.change(number, at: now) { $0.status = status } }
    case .transferEnded(_, let metrics, let error, let number):
      change(load) { load, now in
        load.change(number, at: now) { ($0.metrics, $0.error) = (metrics, error) }
        load.transfers[number] = nil
      }
    case .stored(_, .disk, let bytes, let duration):
      change(load) { load, now in load.append(.store(bytes: bytes), duration, endingAt: now) }
    case .transformed(_, let origin, let duration):
      guard origin != .memory else { return }
      change(load) { load, now in load.append(.transform(origin), duration, endingAt: now) }
    case .finished(_, let source, let fallbackReason, let error, let duration):
      change(load) { load, _ in
        (load.record.source, load.record.fallbackReason) = (source, fallbackReason)
        (load.record.error, load.record.duration) = (error, duration)
      }
    case .workEnded: end(load)
    case .stored, .storeFailed, .readFailed, .revalidated, .backgroundFailed: break
    }
  }

  private func hit(_ load: LoadID, _ url: LoadURL, _ source: ResourceSource, _ duration: Duration) {
    let interested = receivers.filter { $0.wantsHits() }
    guard !interested.isEmpty else { return }
    let record = LoadRecord(
      load: load, url: url, startedAt: clock.now - duration, duration: duration, source: source, isHit: true)
    for receiver in interested { receiver.receive(record, receiver.note()) }
  }

  /// Runs in the caller's task and outside the lock, because a tracer's code makes the notes.
  private func begin(_ load: LoadID, _ url: LoadURL) {
    let new = OpenLoad(
      record: LoadRecord(load: load, url: url, startedAt: clock.now, duration: .zero), start: clock.uptime,
      notes: receivers.map { $0.note() })
    state.withLock { $0.open[load] = new }
  }

  private func change(_ load: LoadID, _ change: (inout OpenLoad, _ now: Duration) -> Void) {
    let now = clock.uptime
    state.withLock { state in
      guard var found = state.open.removeValue(forKey: load) else { return }
      change(&found, now)
      state.open[load] = found
    }
  }

  private func end(_ load: LoadID) {
    guard let ended = state.withLock({ $0.open[load] }) else { return }
    for (receiver, note) in zip(receivers, ended.notes) { receiver.receive(ended.record, note) }
    // Removed after delivery, so that a caller of `idle()` finds the record delivered.
    let waiters = state.withLock { state in
      state.open[load] = nil
      guard state.open.isEmpty else { return [Resumption<Void>]() }
      defer { state.waiters = [] }
      return state.waiters
    }
    for waiter in waiters { waiter.resume() }
  }
}
