/// The decision about a failed request.
public enum RetryDecision: Hashable, Sendable {
  /// Send the request again after this delay.
  case retry(after: Duration)
  /// Treat the failure as final.
  case giveUp
}
