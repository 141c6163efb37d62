internal import CacheCore
internal import HTTPTypes

/// The requests of one download. It sends and counts them and asks the policy about the next one.
///
/// `retrying(_:clock:)` and `resuming(_:clock:)` share it. They differ in the requests that they send and in their use of the
/// responses.
struct RetryLoop: Sendable {
  let base: any Downloader
  let policy: RetryPolicy
  let clock: any CacheClock
  /// The original request, with the number of the first attempt and the time limit for all attempts.
  let request: DownloadRequest
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
      try checkCancellation(error)
      log.note(error)
      return .failure(error)
    }
  }

  /// Throws if the load was cancelled. A cancellation may appear as another error, for example a lost connection.
  func checkCancellation(_ error: CacheError? = nil) throws(CacheError) {
    if Task.isCancelled || error?.isCancellation == true { throw .cancelled }
  }

  func failure(_ reason: Result<HTTPResponse, CacheError>) -> RetryFailure {
    RetryFailure(reason, request: request.head, attempt: log.sent, elapsed: log.elapsed)
  }

  /// Returns the policy's decision, with the random number and the time that the policy does not have itself.
  func decision(on failure: RetryFailure) -> RetryDecision {
    policy.decision(on: failure, fraction: policy.random(), now: clock.now, timeout: request.timeout)
  }

  /// Announces the next request and waits for its delay.
  ///
  /// - Returns: `false` if no network became available in time.
  func wait(_ delay: Duration, after failure: RetryFailure) async throws(CacheError) -> Bool {
    var announced = failure
    announced.delay = delay
    policy.onRetry(announced)
    let limit = [policy.timeLimit, request.timeout].compactMap { $0 }.min()
    return try await RetryWait(policy: policy, clock: clock).pass(
      delay, remaining: limit.map { $0 - log.elapsed }, isForNetwork: failure.error != nil)
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
    let error = CacheError(
      unacceptable: head, reason: "the response has status \(head.status.code)", received: now, now: now)
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
