internal import CacheCore
internal import Synchronization

/// The requests of one download: their number, failures and total costs.
final class AttemptLog: Sendable {
  private struct Transfer {
    /// The number of the request.
    var number: Int
    /// The time from the first request to this one.
    var offset: Duration
    var metrics: @Sendable () -> TransferMetrics
  }

  private struct State {
    var sent: Int
    var failures: [CacheError] = []
    /// The received bytes of transfers that have ended.
    var bytesOnWire: Int64 = 0
    /// The metrics of the response whose head was returned, once its transfer has ended.
    var counted: TransferMetrics?
    var current: Transfer?
    var total: Duration?
  }

  /// The number of body bytes that were returned to the reader.
  let delivered = Atomic<Int64>(0)

  private let first: Int
  private let startedAt: Duration
  private let clock: any CacheClock
  private let state: Lock<State>

  /// `first` is the number of the first request. It is more than 1 if others were sent before.
  init(first: Int, clock: any CacheClock) {
    self.first = first
    self.clock = clock
    startedAt = clock.uptime
    state = Lock(State(sent: first - 1))
  }

  /// The time since the first request.
  var elapsed: Duration { clock.uptime - startedAt }

  /// The number of the last request.
  var sent: Int { state.withLock { $0.sent } }

  /// Returns the number for the next request.
  func next() -> Int {
    state.withLock { state in
      state.sent += 1
      return state.sent
    }
  }

  /// Records a failure and the requests that it counts.
  func note(_ error: CacheError) {
    state.withLock { state in
      state.sent = max(state.sent, error.attempt ?? 0)
      if let history = error.underlying as? FailureHistory {
        state.failures += history.failures
      } else {
        state.failures.append(error)
      }
    }
  }

  /// Records a response and begins to use its metrics.
  func open(_ metrics: @escaping @Sendable () -> TransferMetrics, number: Int, offset: Duration) {
    // A downloader below may have sent more than one request for it.
    let attempts = metrics().attempts
    state.withLock { state in
      state.sent = max(state.sent, number + attempts - 1)
      state.current = Transfer(number: number, offset: offset, metrics: metrics)
    }
  }

  /// Records the end of the current transfer, which completed, failed or was discarded.
  ///
  /// - Parameter isCounted: Whether its head was returned, so that its times and protocol are reported.
  func close(isCounted: Bool) {
    guard let transfer = state.withLock({ $0.current }) else { return }
    // Outside the lock, because the closure belongs to another downloader.
    let metrics = transfer.metrics()
    state.withLock { state in
      state.current = nil
      state.sent = max(state.sent, transfer.number + metrics.attempts - 1)
      state.bytesOnWire += metrics.bytesOnWire
      if isCounted, state.counted == nil { state.counted = metrics }
    }
  }

  /// Adds bytes of a response that were received after it was discarded.
  func addWire(_ bytes: Int64) { state.withLock { $0.bytesOnWire += bytes } }

  /// Records the end of the body.
  func finish() {
    let total = elapsed
    state.withLock { $0.total = $0.total ?? total }
  }

  /// Returns the error to throw: the last failure with the number of requests. If there were several failures, all of them are in
  /// its `underlying`.
  func final(_ error: CacheError) -> CacheError {
    if error.isCancellation { return error }
    return state.withLock { state in
      var last = error
      last.attempt = state.sent
      if state.failures.count > 1 { last.underlying = FailureHistory(state.failures) }
      return last
    }
  }

  /// The metrics of all requests together. See `TransferMetrics`.
  var metrics: TransferMetrics {
    let (kept, current) = state.withLock { ($0, $0.current) }
    let measured = current?.metrics()
    var metrics = kept.counted ?? measured ?? TransferMetrics()
    metrics.bytesOnWire = kept.bytesOnWire + (measured?.bytesOnWire ?? 0)
    if kept.counted != nil { metrics.bytesDecoded = delivered.load(ordering: .relaxed) }
    let last = current.map { $0.number + (measured?.attempts ?? 1) - 1 } ?? kept.sent
    metrics.attempts = max(max(last, kept.sent) - first + 1, 1)
    metrics.total = kept.total ?? current.flatMap { current in measured?.total.map { $0 + current.offset } }
    return metrics
  }
}
