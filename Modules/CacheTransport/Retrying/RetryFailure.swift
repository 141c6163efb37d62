public import CacheCore
public import HTTPTypes

/// A request that failed, as a ``RetryPolicy`` judges it.
public struct RetryFailure: Sendable {
  /// How it failed.
  public enum Reason: Sendable {
    /// No answer, or one whose body broke.
    case error(CacheError)
    /// An answer whose status may be worth another request.
    case answer(HTTPResponse)
  }

  /// How it failed.
  public var reason: Reason
  /// What was asked.
  public var request: HTTPRequest
  /// How many requests have been sent for the resource, counted from 1.
  public var attempt: Int
  /// Time since the first of them.
  public var elapsed: Duration

  /// A failure of its parts.
  public init(_ reason: Reason, request: HTTPRequest, attempt: Int, elapsed: Duration = .zero) {
    self.reason = reason
    self.request = request
    self.attempt = attempt
    self.elapsed = elapsed
  }

  /// The error, when it is one.
  public var error: CacheError? {
    if case .error(let error) = reason { error } else { nil }
  }

  /// The status, when there was an answer.
  public var status: Int? {
    if case .answer(let head) = reason { head.status.code } else { nil }
  }
}
