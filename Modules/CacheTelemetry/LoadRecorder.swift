internal import CacheCore

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
    var waiters: [CheckedContinuation<Void, Never>] = []
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
    await withCheckedContinuation { continuation in
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
      guard state.open.isEmpty else { return [CheckedContinuation<Void, Never>]() }
      defer { state.waiters = [] }
      return state.waiters
    }
    for waiter in waiters { waiter.resume() }
  }
}
