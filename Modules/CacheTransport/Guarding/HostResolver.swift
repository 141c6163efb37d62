public import CacheCore

/// Says at which addresses a host is.
public protocol HostResolver: Component {
  /// All addresses of a host. Ends soon when the calling task is cancelled.
  ///
  /// - Parameter host: a name of letters, digits, dots and hyphens, in lower case and without the dot of the root; never an
  ///   address.
  /// - Returns: at least one.
  /// - Throws: `CacheError.Code.hostNotFound` when it has none.
  func addresses(of host: String) async throws(CacheError) -> [IPAddress]
}
