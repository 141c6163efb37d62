internal import CacheCore
internal import HTTPTypes

/// Beginning anew after a body that broke off: how often, as which attempt, and what was spent on it.
struct RetryState: Sendable {
  /// A policy below bounds the attempts. This bounds an engine that has none, and says each time that asking anew may help.
  private static let limit = 10

  private var count = 0
  /// As which attempt the next request goes out, from 1.
  private(set) var attempt = 1
  /// What the requests before it cost.
  private(set) var spent = TransferMetrics.nothing

  /// Whether an exchange that ended with `error` begins anew.
  func helps(against error: CacheError, for method: HTTPRequest.Method) -> Bool {
    error.code == .bodyInterrupted && count < Self.limit && Self.isAllowed(of: method)
  }

  mutating func begin(after error: CacheError, spending metrics: TransferMetrics) {
    count += 1
    attempt = max(attempt, error.attempt ?? attempt) + 1
    spent = metrics
  }

  /// Counts a request whose response was of no use.
  mutating func begin(spending metrics: TransferMetrics) {
    attempt += 1
    spent = metrics
  }

  /// Whether a request may be sent twice: the methods that are idempotent (RFC 9110 §9.2.2).
  static func isAllowed(of method: HTTPRequest.Method) -> Bool {
    [.get, .head, .options, .trace, .put, .delete].contains(method)
  }
}
