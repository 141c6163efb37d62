/// A request that is going to be sent again; see ``RetryPolicy/onRetry``.
public struct RetryEvent: Sendable {
  /// The number of the request that is going to be sent: 2 for the first retry.
  public var attempt: Int
  /// The wait before the request. A wait for a network may come in addition.
  public var delay: Duration
  /// The failure of the request before.
  public var failure: RetryFailure
  /// The first byte of the request for the rest of a body, or `nil` if the whole body is requested.
  public var resumesAt: Int64?

  /// Creates an event, for tests.
  public init(attempt: Int, delay: Duration, failure: RetryFailure, resumesAt: Int64? = nil) {
    self.attempt = attempt
    self.delay = delay
    self.failure = failure
    self.resumesAt = resumesAt
  }
}
