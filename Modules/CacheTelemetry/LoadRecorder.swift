internal import CacheCore

/// Makes a record of the events of each load.
///
/// It holds the loads that are running. A load always ends, and so does a transfer, so nothing is held for ever.
final class LoadRecorder: Sendable {
  private struct OpenTransfer {
    var transfer: LoadRecord.Transfer
    var start: Duration
  }

  /// A load that is running, or whose transfers are running.
  private struct OpenLoad {
    var record: LoadRecord
    /// The uptime at which the load started.
    var start: Duration
    var notes: [(any Sendable)?]
    var transfers: [OpenTransfer] = []
    /// Whether the load has ended, so that its record is complete when its transfers have.
    var isFinished = false

    mutating func append(_ work: LoadRecord.Work, _ duration: Duration, endingAt now: Duration) {
      record.phases.append(.init(start: now - start - duration, duration: duration, work: work))
    }

    mutating func note(status: Int, of url: LoadURL) {
      guard let index = transfers.firstIndex(where: { $0.transfer.url == url && $0.transfer.status == nil }) else { return }
      transfers[index].transfer.status = status
    }

    /// Moves a transfer that has ended to the phases. Transfers of one URL end in the order in which they began.
    mutating func end(_ url: LoadURL, _ metrics: TransferMetrics, _ error: CacheError?, at now: Duration) {
      guard let index = transfers.firstIndex(where: { $0.transfer.url == url }) else { return }
      var open = transfers.remove(at: index)
      (open.transfer.metrics, open.transfer.error) = (metrics, error)
      append(.transfer(open.transfer), now - open.start, endingAt: now)
    }
  }

  private let receivers: [Telemetry.Outlet.Records]
  private let clock: any CacheClock
  private let open = Lock<[LoadID: OpenLoad]>([:])

  init(_ receivers: [Telemetry.Outlet.Records], clock: any CacheClock) {
    self.receivers = receivers
    self.clock = clock
  }

  /// The number of loads that are running, and of those that have left a transfer.
  var count: Int { open.withLock { $0.count } }

  func receive(_ event: CacheEvent, of load: LoadID) {
    switch event {
    case .hit(let url, let source, let duration): hit(load, url, source, duration)
    case .started(let url): open.withLock { [new = begin(load, url)] in $0[load] = new }
    case .joined(_, let other): change(load) { $0.record.joined = other }
    case .requestSent(let url, let isConditional): send(url, isConditional, of: load)
    case .responseReceived(let url, let status): change(load) { $0.note(status: status, of: url) }
    case .transferEnded(let url, let metrics, let error): end(url, metrics, error, of: load)
    case .stored(_, .disk, let bytes, let duration): append(.store(bytes: bytes), duration, to: load)
    case .transformed(_, let origin, let duration):
      if origin != .memory { append(.transform(origin), duration, to: load) }
    case .finished(_, let source, let error, let duration): finish(load, source, error, duration)
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

  /// Called in the caller's task, outside the lock, because notes are made by a tracer's code.
  private func begin(_ load: LoadID, _ url: LoadURL) -> OpenLoad {
    OpenLoad(
      record: LoadRecord(load: load, url: url, startedAt: clock.now, duration: .zero), start: clock.uptime,
      notes: receivers.map { $0.note() })
  }

  private func change(_ load: LoadID, _ change: (inout OpenLoad) -> Void) {
    open.withLock { open in
      guard var found = open.removeValue(forKey: load) else { return }
      change(&found)
      open[load] = found
    }
  }

  private func append(_ work: LoadRecord.Work, _ duration: Duration, to load: LoadID) {
    let now = clock.uptime
    change(load) { $0.append(work, duration, endingAt: now) }
  }

  private func send(_ url: LoadURL, _ isConditional: Bool, of load: LoadID) {
    let (now, time) = (clock.uptime, clock.now)
    let transfer = OpenTransfer(transfer: .init(url: url, isConditional: isConditional), start: now)
    open.withLock { open in
      var found =
        open.removeValue(forKey: load)
        // The load has ended, and its work goes on in the background.
        ?? OpenLoad(
          record: LoadRecord(load: load, url: url, startedAt: time, duration: .zero, isBackground: true), start: now,
          notes: receivers.map { _ in nil }, isFinished: true)
      found.transfers.append(transfer)
      open[load] = found
    }
  }

  private func end(_ url: LoadURL, _ metrics: TransferMetrics, _ error: CacheError?, of load: LoadID) {
    let now = clock.uptime
    let ended = open.withLock { open -> OpenLoad? in
      guard var found = open.removeValue(forKey: load) else { return nil }
      found.end(url, metrics, error, at: now)
      guard found.isFinished, found.transfers.isEmpty else {
        open[load] = found
        return nil
      }
      if found.record.isBackground { (found.record.duration, found.record.error) = (now - found.start, error) }
      return found
    }
    if let ended { deliver(ended) }
  }

  private func finish(_ load: LoadID, _ source: ResourceSource?, _ error: CacheError?, _ duration: Duration) {
    let ended = open.withLock { open -> OpenLoad? in
      guard var found = open.removeValue(forKey: load) else { return nil }
      (found.record.source, found.record.error, found.record.duration) = (source, error, duration)
      guard !found.transfers.isEmpty else { return found }
      // A short body that is not wanted is read behind the load, and a cancelled transfer ends a moment after its load.
      found.isFinished = true
      open[load] = found
      return nil
    }
    if let ended { deliver(ended) }
  }

  private func deliver(_ load: OpenLoad) {
    for (receiver, note) in zip(receivers, load.notes) { receiver.receive(load.record, note) }
  }
}
