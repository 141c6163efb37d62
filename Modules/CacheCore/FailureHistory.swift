/// The errors of every request that was sent for a resource, as the `underlying` of the error that is thrown.
///
/// After retries, the last error is thrown. With alternative sources, the error of the primary source is thrown. A response with
/// a retryable status is listed as `CacheError.Code.unacceptableStatus`.
///
/// ```swift
/// for failure in (error.underlying as? FailureHistory)?.failures ?? [] { print(failure.url ?? "", failure.reason) }
/// ```
public struct FailureHistory: Error, Sendable {
  /// The errors in the order of the requests. The thrown error is listed as it was before this history became its `underlying`.
  public let failures: [CacheError]

  /// Creates a history from its errors.
  public init(_ failures: [CacheError]) { self.failures = failures }
}

extension FailureHistory: CustomStringConvertible {
  /// All errors in one line.
  public var description: String { failures.map(\.description).joined(separator: "; then ") }
}
