/// The errors of all requests for a resource. It is the `underlying` error of the error that a load throws.
///
/// After retries, the load throws the last error. With alternative sources, it throws the error of the primary source. A response
/// with a retryable status is listed as `CacheError.Code.unacceptableStatus`.
///
/// ```swift
/// for failure in (error.underlying as? FailureHistory)?.failures ?? [] { print(failure.url ?? "", failure.reason) }
/// ```
public struct FailureHistory: Error, Sendable {
  /// The errors in the order of the requests. The thrown error is listed without this history.
  public let failures: [CacheError]

  /// Creates a history from its errors.
  public init(_ failures: [CacheError]) { self.failures = failures }
}

extension FailureHistory: CustomStringConvertible {
  /// All errors in one line.
  public var description: String { failures.map(\.description).joined(separator: "; then ") }
}
