public import CacheCore

/// All failures of a resource that was asked for several times: the `underlying` of the error that is thrown in the end.
///
/// The error itself is the last one, since that is what stands in the way now; what came before is here. A retryable status is
/// told as `CacheError.Code.unacceptableStatus`.
public struct RetryHistory: Error, Sendable {
  /// In order; the last is the one that was thrown, with its own `underlying`.
  public let failures: [CacheError]

  /// A history of its failures.
  public init(_ failures: [CacheError]) { self.failures = failures }
}

extension RetryHistory: CustomStringConvertible {
  public var description: String { failures.map(\.description).joined(separator: "; then ") }
}
