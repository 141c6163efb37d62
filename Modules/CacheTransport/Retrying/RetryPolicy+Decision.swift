public import CacheCore
internal import HTTPTypes

extension RetryPolicy {
  /// Whether, and after which wait, a request is sent again. Pure: the same values get the same decision.
  ///
  /// - Parameters:
  ///   - failure: what happened to the last request.
  ///   - fraction: from 0 to 1, drawn at random; see ``Backoff``.
  ///   - now: wall time, for a `Retry-After` that names a date.
  ///   - timeout: the time that the request itself allows for everything, from the first request on; nil: none.
  public func decision(
    on failure: RetryFailure, fraction: Double, now: Timestamp, timeout: Duration? = nil
  ) -> RetryDecision {
    // Before anything of the caller's is asked: who gave up is not asked whether to go on.
    if failure.error?.isCancellation == true { return .giveUp }
    guard failure.attempt < maximumAttempts else { return .giveUp }
    let delay: Duration
    switch judge?(failure) {
    case .giveUp?: return .giveUp
    case .retry(let after)?: delay = max(after, .zero)
    case nil:
      guard let ruled = ruledDelay(failure, fraction, now) else { return .giveUp }
      delay = ruled
    }
    for limit in [timeLimit, timeout].compactMap({ $0 }) where failure.elapsed + delay >= limit { return .giveUp }
    return .retry(after: delay)
  }

  /// The wait by the rules, or nil when they allow no further request.
  private func ruledDelay(_ failure: RetryFailure, _ fraction: Double, _ now: Timestamp) -> Duration? {
    guard methods.contains(failure.request.method) else { return nil }
    let delay = backoff.delay(after: failure.attempt, fraction: fraction)
    switch failure.outcome {
    case .failure(let error): return errors.contains(error.code) ? delay : nil
    case .success(let head):
      guard statuses.contains(head.status.code) else { return nil }
      guard let asked = RetryAfter.delay(in: head.headerFields, now: now) else { return delay }
      // Not earlier than the server asks, and later when the back-off has come that far.
      return asked <= maximumRetryAfter ? max(asked, delay) : nil
    }
  }

  /// Whether a status may be worth another request: only then an answer is a failure at all.
  func mayRetry(_ head: HTTPResponse) -> Bool { judge != nil || statuses.contains(head.status.code) }
}
