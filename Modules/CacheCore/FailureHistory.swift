/// The errors of all requests for a resource, as the `underlying` of the error that is thrown in the end.
///
/// After retries, the error that is thrown is the last one. If the original and all alternative sources failed, it is the error
/// of the original. A status that is worth a retry is listed as `CacheError.Code.unacceptableStatus`.
///
/// ```swift
/// for failure in (error.underlying as? FailureHistory)?.failures ?? [] { print(failure.url ?? "", failure.reason) }
/// ```
public struct FailureHistory: Error, Sendable {
  /// The errors in the order of the requests. The error that is thrown is listed with its own `underlying`.
  public let failures: [CacheError]

  /// Creates a history from its errors.
  public init(_ failures: [CacheError]) { self.failures = failures }
}

extension FailureHistory: CustomStringConvertible {
  /// All errors in one line.
  public var description: String { failures.map(\.description).joined(separator: "; then ") }
}
