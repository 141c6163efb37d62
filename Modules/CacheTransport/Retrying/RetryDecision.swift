/// A decision about a request that failed.
public enum RetryDecision: Hashable, Sendable {
  /// The request is sent again after this time.
  case retry(after: Duration)
  /// The failure is final.
  case giveUp
}
