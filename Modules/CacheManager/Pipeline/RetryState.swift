internal import CacheCore
internal import HTTPTypes

/// The attempts of a request whose body was interrupted, and their cost.
struct RetryState: Sendable {
  /// The largest number of new requests, for engines without a retry policy that always report an interruption.
  private static let limit = 10

  private var count = 0
  /// The number of the next attempt, from 1.
  private(set) var attempt = 1
  /// The cost of the attempts before it.
  private(set) var spent = TransferMetrics.nothing

  /// Whether a request that ended with `error` is sent again.
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

  /// Whether a request may be sent twice, because its method is idempotent (RFC 9110 §9.2.2).
  static func isAllowed(of method: HTTPRequest.Method) -> Bool {
    [.get, .head, .options, .trace, .put, .delete].contains(method)
  }
}
