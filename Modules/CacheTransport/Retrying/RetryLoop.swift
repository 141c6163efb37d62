internal import CacheCore
internal import HTTPTypes

/// The requests of one download: sends them, counts them, and asks the policy about the next.
///
/// Shared by `retrying(_:clock:)` and `resuming(_:clock:)`, which differ in what they ask for and in what they do with the
/// answer.
struct RetryLoop: Sendable {
  let base: any Downloader
  let policy: RetryPolicy
  let clock: any CacheClock
  /// What was asked for: with the first request's number, and the time that all of them may take.
  let request: DownloadRequest
  let log: AttemptLog
  /// Of the answer before the next request.
  let drain = BodyDrain()

  init(base: any Downloader, policy: RetryPolicy, clock: any CacheClock, request: DownloadRequest) {
    self.base = base
    self.policy = policy
    self.clock = clock
    self.request = request
    log = AttemptLog(first: request.attempt, clock: clock)
  }

  /// Sends one request. Failures are written down.
  ///
  /// - Throws: a cancellation alone.
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

  /// A cancellation may show as anything: a broken connection, say.
  func checkCancellation(_ error: CacheError? = nil) throws(CacheError) {
    if Task.isCancelled || error?.isCancellation == true { throw .cancelled }
  }

  func failure(_ reason: Result<HTTPResponse, CacheError>) -> RetryFailure {
    RetryFailure(reason, request: request.head, attempt: log.sent, elapsed: log.elapsed)
  }

  /// The policy's decision, with the random number and the time that it does not have itself.
  func decision(on failure: RetryFailure) -> RetryDecision {
    policy.decision(on: failure, fraction: policy.random(), now: clock.now, timeout: request.timeout)
  }

  /// Announces the next request and waits for its time.
  ///
  /// - Returns: false when there is no network, and none came in time.
  func wait(_ delay: Duration, after failure: RetryFailure) async throws(CacheError) -> Bool {
    policy.onRetry?(failure, delay)
    let limit = [policy.timeLimit, request.timeout].compactMap { $0 }.min()
    return try await RetryWait(policy: policy, clock: clock).pass(
      delay, remaining: limit.map { $0 - log.elapsed }, isForNetwork: failure.error != nil)
  }

  /// The request as it can be sent again, or nil when its body can't be had a second time.
  func repeated() async throws(CacheError) -> DownloadRequest? {
    guard let body = request.body else { return request }
    var again = request
    if let data = body.data {
      again.body = ResourceBody(data)
    } else {
      guard let fresh = try await policy.reopenBody?(request) else { return nil }
      again.body = fresh
    }
    return again
  }

  /// Gives an answer back that nobody is going to read, before another request is sent.
  ///
  /// A short body is read meanwhile, so that its connection can be used again; a long one is not worth that. See ``BodyDrain``;
  /// whoever calls this ends it, should there be no other request after all.
  func discard(_ response: DownloadResponse) {
    let body = response.body
    // A body that recovers would send requests for bytes that nobody wants.
    guard body.data == nil, !(body.source is RecoveringBody), let length = body.length, length <= Self.drained else {
      return giveUp(response)
    }
    log.close(isCounted: false)
    let before = response.metrics().bytesOnWire
    drain.begin(body, limit: Self.drained) { [log, metrics = response.metrics] in
      log.addWire(metrics().bytesOnWire - before)
    }
  }

  /// Gives an answer back that nobody is going to read, and that was the last.
  func giveUp(_ response: DownloadResponse) {
    log.close(isCounted: false)
    response.body.source.cancel()
  }

  /// Bytes.
  private static let drained: Int64 = 16 << 10

  /// An answer without a status that counts, as one of the failures.
  @discardableResult
  func noteStatus(_ head: HTTPResponse) -> CacheError {
    let error = CacheError(.unacceptableStatus, reason: "the server answered \(head.status.code)", status: head.status.code)
    log.note(error)
    return error
  }

  // MARK: Bodies that broke

  /// What is thrown for a body that can't be continued here: an invitation to start over where the policy has another request to
  /// give, else what happened.
  func interruption(_ error: CacheError, at position: Int64, reason: String? = nil) -> CacheError {
    let original = Self.original(of: error)
    guard position > 0 || reason != nil, isRepeatable, case .retry = decision(on: failure(.failure(original))) else {
      return log.final(original)
    }
    var interruption = log.final(original)
    let underlying: any Error = interruption.underlying is FailureHistory ? interruption.underlying ?? original : original
    interruption.code = .bodyInterrupted
    interruption.reason = "the body broke off after \(position) bytes (\(original.reason)), and \(reason ?? "can't be continued")"
    interruption.underlying = underlying
    return interruption
  }

  private var isRepeatable: Bool { request.body == nil || request.body?.data != nil || policy.reopenBody != nil }

  /// What broke the body in the first place, when somebody below has said already that it can't be continued.
  static func original(of error: CacheError) -> CacheError {
    guard error.code == .bodyInterrupted else { return error }
    if let history = error.underlying as? FailureHistory, let last = history.failures.last { return last }
    return error.underlying as? CacheError ?? error
  }
}
