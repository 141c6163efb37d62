internal import CacheCore
internal import Synchronization

/// The requests of one download: how many, how they failed, and what they cost together.
final class AttemptLog: Sendable {
  private struct Transfer {
    /// Its request's number.
    var number: Int
    /// When its request was sent, from the first one's on.
    var offset: Duration
    var metrics: @Sendable () -> TransferMetrics
  }

  private struct State {
    var sent: Int
    var failures: [CacheError] = []
    /// Of transfers that are over with.
    var bytesOnWire: Int64 = 0
    /// Of the answer whose head was handed over, once its transfer is over with.
    var counted: TransferMetrics?
    var current: Transfer?
    var total: Duration?
  }

  /// Bytes of the body that were handed over.
  let delivered = Atomic<Int64>(0)

  private let first: Int
  private let startedAt: Duration
  private let clock: any CacheClock
  private let state: Lock<State>

  /// `first` is the number of the first request: more than 1 where others were sent before.
  init(first: Int, clock: any CacheClock) {
    self.first = first
    self.clock = clock
    startedAt = clock.uptime
    state = Lock(State(sent: first - 1))
  }

  /// Time since the first request.
  var elapsed: Duration { clock.uptime - startedAt }

  /// The number of the last request.
  var sent: Int { state.withLock { $0.sent } }

  /// The number of a request that is going to be sent.
  func next() -> Int {
    state.withLock { state in
      state.sent += 1
      return state.sent
    }
  }

  /// A failure, and how many requests it tells of.
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

  /// An answer came; what is measured of it from here on counts.
  func open(_ metrics: @escaping @Sendable () -> TransferMetrics, number: Int, offset: Duration) {
    // Whoever is below may have sent more than one request for it.
    let attempts = metrics().attempts
    state.withLock { state in
      state.sent = max(state.sent, number + attempts - 1)
      state.current = Transfer(number: number, offset: offset, metrics: metrics)
    }
  }

  /// The transfer is over, broken or given back.
  ///
  /// - Parameter isCounted: whether its head was handed over, so that times and protocol are told of it.
  func close(isCounted: Bool) {
    guard let transfer = state.withLock({ $0.current }) else { return }
    // Outside the lock: somebody else's closure.
    let metrics = transfer.metrics()
    state.withLock { state in
      state.current = nil
      state.sent = max(state.sent, transfer.number + metrics.attempts - 1)
      state.bytesOnWire += metrics.bytesOnWire
      if isCounted, state.counted == nil { state.counted = metrics }
    }
  }

  /// Bytes that came of an answer after it was given back.
  func addWire(_ bytes: Int64) { state.withLock { $0.bytesOnWire += bytes } }

  /// The body's last byte was handed over.
  func finish() {
    let total = elapsed
    state.withLock { $0.total = $0.total ?? total }
  }

  /// What is thrown in the end: the last failure, with the number of requests, and with all of them behind it when there were
  /// several.
  func final(_ error: CacheError) -> CacheError {
    if error.isCancellation { return error }
    return state.withLock { state in
      var last = error
      last.attempt = state.sent
      if state.failures.count > 1 { last.underlying = FailureHistory(state.failures) }
      return last
    }
  }

  /// Of all requests together: see `TransferMetrics`.
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
