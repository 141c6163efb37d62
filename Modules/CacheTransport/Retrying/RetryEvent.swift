/// A request is going to be sent again; see ``RetryPolicy/onRetry``.
public struct RetryEvent: Sendable {
  /// The number of the request that is going to be sent: 2 for the first retry.
  public var attempt: Int
  /// The wait before it. Waiting for a network may come on top.
  public var delay: Duration
  /// Why: what happened to the request before.
  public var failure: RetryFailure
  /// The first byte that is going to be asked for, when the rest of a body is; nil: the whole.
  public var resumesAt: Int64?

  /// An event of its parts.
  public init(attempt: Int, delay: Duration, failure: RetryFailure, resumesAt: Int64? = nil) {
    self.attempt = attempt
    self.delay = delay
    self.failure = failure
    self.resumesAt = resumesAt
  }
}
