public import CacheCore
internal import HTTPTypes

extension RetryPolicy {
  /// Returns whether a request is sent again, and after which delay. A pure function: equal values give equal decisions.
  ///
  /// - Parameters:
  ///   - failure: The last failure.
  ///   - fraction: A random number from 0 to 1. See ``Backoff``.
  ///   - now: The current time, for a `Retry-After` with a date.
  ///   - timeout: The request's own time limit, from the first attempt on, or `nil` for none.
  public func decision(
    on failure: RetryFailure, fraction: Double, now: Timestamp, timeout: Duration? = nil
  ) -> RetryDecision {
    // Checked before the hook, which must not be called after a cancellation.
    if failure.error?.isCancellation == true { return .giveUp }
    guard failure.attempt < maximumAttempts else { return .giveUp }
    let delay: Duration
    switch judge(failure) ?? nil {
    case .giveUp?: return .giveUp
    case .retry(let after)?: delay = max(after, .zero)
    case nil:
      guard let ruled = ruledDelay(failure, fraction, now) else { return .giveUp }
      delay = ruled
    }
    for limit in [timeLimit, timeout].compactMap({ $0 }) where failure.elapsed + delay >= limit { return .giveUp }
    return .retry(after: delay)
  }

  /// Returns the delay by the rules, or `nil` if they allow no further request.
  private func ruledDelay(_ failure: RetryFailure, _ fraction: Double, _ now: Timestamp) -> Duration? {
    guard methods.contains(failure.request.method) else { return nil }
    let requested: Duration?
    switch failure.outcome {
    case .failure(let error):
      guard errors.contains(error.code) else { return nil }
      requested = error.retryAfter
    case .success(let head):
      guard statuses.contains(head.status.code) else { return nil }
      requested = head.headerFields.retryAfter(receivedAt: now)
    }
    let delay = backoff.delay(after: failure.attempt, fraction: fraction)
    guard let requested else { return delay }
    // Not earlier than the server requests, but later if the back-off delay is longer.
    return requested <= maximumRetryAfter ? max(requested, delay) : nil
  }

  /// Returns whether a status may be retried. Otherwise the response is not a failure.
  func mayRetry(_ head: HTTPResponse) -> Bool { judge.isSet || statuses.contains(head.status.code) }
}
