/// The stored responses that a load may use in place of a response that did not arrive, or that reports a failure.
///
/// The setting concerns this cache alone, and nothing of it is sent to the origin. A stored response never replaces one of
/// another variant or partition, one to an unsafe request, or one with ``LoadPolicy/reload``. A cancellation and errors of the
/// program, such as ``CacheError/Code/misuse``, remain errors.
///
/// ```swift
/// let lastKnown = RequestOptions { $0.staleFallback = .anyStored }
/// ```
public enum StaleFallback: Hashable, Sendable, CaseIterable {
  /// The validator decides (RFC 9111 §4.2.4, RFC 5861 §4). A stored response is used if no response arrives, unless a directive
  /// such as `must-revalidate` forbids it. With `stale-if-error`, it also replaces a server error.
  case standard
  /// Any stored response is used, whatever the failure and the directives are: offline, after a timeout, or for a status that the
  /// load does not accept. For an HTTP caller, a 429 and the statuses from 500 are failures.
  ///
  /// The failed response is not stored. A response that arrived completely replaces the stored one, even if a transform then
  /// fails to decode it.
  case anyStored
  /// No stored response is used. The failure is the error of the load.
  case never
}
