public import CacheCore
public import HTTPTypes

/// A failed request, as a ``RetryPolicy`` receives it.
public struct RetryFailure: Sendable {
  /// The response, if its status may be retried, or the error of the request or of its body.
  public var outcome: Result<HTTPResponse, CacheError>
  /// The request.
  public var request: HTTPRequest
  /// The number of the request for this resource, counted from 1.
  public var attempt: Int
  /// The time since the first request.
  public var elapsed: Duration
  /// The number of body bytes received so far, if a retry requests only the rest of the body. Otherwise 0.
  public var receivedBytes: Int64 = 0
  /// The delay before the next request. Zero until the policy has decided.
  public var delay: Duration = .zero

  /// Creates a failure for a test of a policy.
  public init(
    _ outcome: Result<HTTPResponse, CacheError>, request: HTTPRequest, attempt: Int, elapsed: Duration = .zero
  ) {
    self.outcome = outcome
    self.request = request
    self.attempt = attempt
    self.elapsed = elapsed
  }

  /// The error, or `nil` if there was a response.
  public var error: CacheError? {
    if case .failure(let error) = outcome { error } else { nil }
  }

  /// The status of the response, or `nil` if there was none.
  public var status: Int? {
    if case .success(let head) = outcome { head.status.code } else { nil }
  }
}
