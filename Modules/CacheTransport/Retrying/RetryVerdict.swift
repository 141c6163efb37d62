/// What a closure of the caller's says about a failure; see ``RetryPolicy/judge``.
public enum RetryVerdict: Hashable, Sendable {
  /// As the policy's own rules have it.
  case byPolicy
  /// No further request.
  case giveUp
  /// Another request after this time, whatever method, status or error it was. The number of attempts, the time limits and a
  /// cancellation still bind.
  case retry(after: Duration)
}

/// What a ``RetryPolicy`` decides about a failure.
public enum RetryDecision: Hashable, Sendable {
  /// Another request after this time.
  case retry(after: Duration)
  /// The failure is final.
  case giveUp
}
