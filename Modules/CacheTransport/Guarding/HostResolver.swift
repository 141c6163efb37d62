public import CacheCore

/// A resolver of host names.
public protocol HostResolver: Component {
  /// Returns all addresses of a host. Ends soon after the calling task is cancelled.
  ///
  /// - Parameter host: A name of letters, digits, dots and hyphens, in lower case and without the root dot. It is never an
  ///   address.
  /// - Returns: At least one address.
  /// - Throws: `CacheError.Code.hostNotFound` if the host has no address.
  func addresses(of host: String) async throws(CacheError) -> [IPAddress]
}
