public import CacheCore

#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

/// The system's resolver (`getaddrinfo`), which uses the hosts file, DNS and the other configured sources.
///
/// The call blocks, so it runs on eight separate threads per process. A cancelled caller returns at once. The system call runs to
/// its end and occupies its thread until then.
package struct SystemResolver: HostResolver {
  package var id: ComponentID { ComponentID(Self.self) }

  package init() {}

  package func addresses(of host: String) async throws(CacheError) -> [IPAddress] {
    try await Self.pool.run { Self.lookUp(host) }.get()
  }

  private static let pool = BlockingThreadPool(count: 8, label: "etagere.names")

  private static func lookUp(_ host: String) -> Result<[IPAddress], CacheError> {
    guard !host.utf8.contains(0) else { return .failure(CacheError(.invalidURL, reason: "a host name cannot contain NUL")) }
    var hints = addrinfo()
    hints.ai_family = AF_UNSPEC
    // One socket type only: otherwise each address is listed once per type.
    #if canImport(Glibc)
    hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
    #else
    hints.ai_socktype = SOCK_STREAM
    #endif
    var found: UnsafeMutablePointer<addrinfo>?
    let code = getaddrinfo(host, nil, &hints, &found)
    defer { if let found { freeaddrinfo(found) } }
    guard code == 0 else {
      let reason = gai_strerror(code).map { String(cString: $0) } ?? "error \(code)"
      return .failure(CacheError(.hostNotFound, reason: "cannot resolve \(host): \(reason)"))
    }
    var addresses: [IPAddress] = []
    var next = found
    while let entry = next?.pointee {
      if let socket = entry.ai_addr, let address = IPAddress(socketAddress: socket, family: entry.ai_family),
        !addresses.contains(address)
      {
        addresses.append(address)
      }
      next = entry.ai_next
    }
    guard !addresses.isEmpty else { return .failure(CacheError(.hostNotFound, reason: "\(host) has no address")) }
    return .success(addresses)
  }
}

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
