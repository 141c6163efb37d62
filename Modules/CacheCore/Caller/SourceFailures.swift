/// Why neither the original nor any of its alternatives could be had: the error behind a load's own, which is the original's.
///
/// ```swift
/// for failure in (error.underlying as? SourceFailures)?.failures ?? [] { print(failure.url ?? "", failure.reason) }
/// ```
public struct SourceFailures: Error, Sendable {
  /// The errors in the order of asking, the original's first; each names its URL.
  public var failures: [CacheError]

  /// The errors of all sources.
  public init(_ failures: [CacheError]) { self.failures = failures }
}

extension SourceFailures: CustomStringConvertible {
  /// One line: all of them.
  public var description: String { failures.map(\.description).joined(separator: "; ") }
}
