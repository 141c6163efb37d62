internal import CacheCore
internal import HTTPTypes
internal import Synchronization

/// The requests of one download. It sends and counts them and asks the policy about the next one.
///
/// `retrying(_:clock:)` and `resuming(_:clock:)` share it. They differ in the requests that they send and in their use of the
/// responses.
struct RetryLoop: Sendable {
  let base: any Downloader
  let policy: RetryPolicy
  let clock: any CacheClock
  /// The original request, with the number of the first attempt and the time limit for all attempts.
  private(set) var request: DownloadRequest
  let log: AttemptLog
  /// Reads the discarded response before the next request.
  let drain = BodyDrain()

  init(base: any Downloader, policy: RetryPolicy, clock: any CacheClock, request: DownloadRequest) {
    self.base = base
    self.policy = policy
    self.clock = clock
    self.request = request
    log = AttemptLog(first: request.attempt, clock: clock)
  }

  /// The same attempts for a body whose head was returned. An interim response to a further request would follow that head.
  var afterHead: RetryLoop {
    var loop = self
    loop.request.onInterimResponse = nil
    return loop
  }

  /// Sends one request and records a failure.
  ///
  /// - Throws: Only a cancellation.
  func send(_ request: DownloadRequest) async throws(CacheError) -> Result<DownloadResponse, CacheError> {
    drain.end()
    var numbered = request
    numbered.attempt = log.next()
    let offset = log.elapsed
    if numbered.attempt > self.request.attempt, let timeout = request.timeout { numbered.timeout = max(timeout - offset, .zero) }
    do throws(CacheError) {
      let response = try await base.download(numbered)
      log.open(response.metrics, number: numbered.attempt, offset: offset)
      return .success(response)
    } catch {
      // A cancellation may appear as another error, for example a lost connection.
      if Task.isCancelled || error.isCancellation { throw .cancelled }
      log.note(error)
      return .failure(error)
    }
  }

  func failure(_ reason: Result<HTTPResponse, CacheError>) -> RetryFailure {
    RetryFailure(reason, request: request.head, attempt: log.sent, elapsed: log.elapsed)
  }

  /// Returns the policy's decision, with the random number and the time that the policy does not have itself.
  func decision(on failure: RetryFailure) -> RetryDecision {
    policy.decision(on: failure, fraction: policy.random(), now: clock.now, timeout: request.timeout)
  }

  /// Announces the next request and waits for its delay, or for a network if a missing one may be the cause of the failure.
  ///
  /// - Returns: `false` if no network became available in time.
  /// - Throws: A cancellation, as soon as the task is cancelled.
  func wait(_ delay: Duration, after failure: RetryFailure) async throws(CacheError) -> Bool {
    var announced = failure
    announced.delay = delay
    policy.onRetry(announced)
    if failure.error != nil, let network = policy.network, !network.isReachable { return try await reach(network) }
    do throws(CancellationError) {
      if delay > .zero { try await clock.sleep(for: delay) }
      return true
    } catch {
      throw .cancelled
    }
  }

  // No back-off after a network returns, because that releases the requests of only one machine.
  private func reach(_ network: any NetworkMonitor) async throws(CacheError) -> Bool {
    let limits = [policy.timeLimit, request.timeout].compactMap { $0 }.map { $0 - log.elapsed }
    let limit = min(policy.networkWaitLimit, limits.min() ?? policy.networkWaitLimit)
    guard limit > .zero else { return false }
    do throws(CacheError) {
      try await Deadline(limit: limit, clock: clock, error: CacheError(.offline, reason: "no network became available"))
        .run { () async throws(CacheError) in
          do throws(CancellationError) { try await network.waitUntilReachable() } catch { throw .cancelled }
        }
    } catch {
      if error.isCancellation || Task.isCancelled { throw .cancelled }
      return false
    }
    if Task.isCancelled { throw .cancelled }
    return true
  }

  /// Returns the request for another attempt, or `nil` if its body cannot be read again.
  func repeated() async throws(CacheError) -> DownloadRequest? {
    guard let body = request.body else { return request }
    var again = request
    if let data = body.data {
      again.body = ResourceBody(data)
    } else {
      guard let fresh = try await policy.reopenBody.callAsync(request) ?? nil else { return nil }
      again.body = fresh
    }
    return again
  }

  /// Discards a response before another request is sent.
  ///
  /// A short body is read meanwhile, so that its connection can be reused. A long body is cancelled. The caller ends
  /// ``BodyDrain`` if no other request follows.
  func discard(_ response: DownloadResponse) {
    let body = response.body
    // A recovering body would send requests for unneeded bytes.
    guard body.data == nil, !(body.source is RecoveringBody), let length = body.length, length <= Self.drained else {
      return giveUp(response)
    }
    log.close(isCounted: false)
    let before = response.metrics().bytesOnWire
    drain.begin(body, limit: Self.drained) { [log, metrics = response.metrics] in
      log.addWire(metrics().bytesOnWire - before)
    }
  }

  /// Discards the last response.
  func giveUp(_ response: DownloadResponse) {
    log.close(isCounted: false)
    response.body.source.cancel()
  }

  /// The maximum number of bytes of a discarded body that are read.
  private static let drained: Int64 = 16 << 10

  /// Records a response as a failure because of its status.
  @discardableResult
  func noteStatus(_ head: HTTPResponse) -> CacheError {
    let now = clock.now
    let error = CacheError(unacceptable: head, reason: "the response has status \(head.status.code)", received: now, now: now)
    log.note(error)
    return error
  }

  // MARK: Failed bodies

  /// Returns the error for a body that cannot be continued: `bodyInterrupted` if the policy allows another attempt, or else the
  /// original error.
  func interruption(_ error: CacheError, at position: Int64, reason: String? = nil) -> CacheError {
    let original = Self.original(of: error)
    guard position > 0 || reason != nil, isRepeatable, case .retry = decision(on: failure(.failure(original))) else {
      return log.final(original)
    }
    var interruption = log.final(original)
    let underlying: any Error = interruption.underlying is FailureHistory ? interruption.underlying ?? original : original
    interruption.code = .bodyInterrupted
    interruption.reason = "the body was cut off after \(position) bytes (\(original.reason)): \(reason ?? "it cannot be resumed")"
    interruption.underlying = underlying
    return interruption
  }

  private var isRepeatable: Bool { request.body == nil || request.body?.data != nil || policy.reopenBody.isSet }

  /// Returns the original error of a body that a downloader below could not continue.
  static func original(of error: CacheError) -> CacheError {
    guard error.code == .bodyInterrupted else { return error }
    if let history = error.underlying as? FailureHistory, let last = history.failures.last { return last }
    return error.underlying as? CacheError ?? error
  }
}

/// A reader for the short body of a discarded response. It reads to the end, so that the connection can be reused, but only until
/// the next request is sent.
///
/// A slow server must not delay the next request. Neither the load nor the connection, or a slot of ``LimitedDownloader``, may
/// wait for the end of an unneeded body.
final class BodyDrain: Sendable {
  private let body = Lock<ResourceBody?>(nil)

  /// - Parameters:
  ///   - body: A body of at most `limit` bytes.
  ///   - limit: The maximum number of bytes.
  ///   - ended: A closure called after the body was read, failed or was cancelled.
  func begin(_ body: ResourceBody, limit: Int64, ended: @escaping @Sendable () -> Void) {
    self.body.withLock { $0 = body }
    Task.detached(priority: .utility) {
      _ = try? await body.collect(limit: limit)
      body.source.cancel()
      ended()
    }
  }

  /// Cancels the unread rest of the body.
  func end() {
    body.withLock { $0.take() }?.source.cancel()
  }
}

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
