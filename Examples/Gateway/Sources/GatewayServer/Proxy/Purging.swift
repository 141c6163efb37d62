import CacheCore
import HTTPTypes
public import NIOCore

/// A type that can remove stored responses.
protocol Purging: Sendable {
  /// Removes the stored responses for the URL of a request, and returns their number.
  func purge(_ request: HTTPRequest) async throws(CacheError) -> Int
}

/// The purging of a gateway without a cache, which has nothing to remove.
struct NothingToPurge: Purging {
  func purge(_ request: HTTPRequest) async throws(CacheError) -> Int { 0 }
}

/// The clients whose `PURGE` requests are carried out.
public enum PurgePermission: String, Sendable, CaseIterable {
  /// Clients on the same machine.
  case loopback
  /// All clients.
  case anyone
  /// No client.
  case nobody
  /// `PURGE` is passed on to the origin like any other method.
  case origin

  /// Returns whether a client with this address may purge.
  public func allows(_ peer: SocketAddress?) -> Bool {
    switch self {
    case .loopback: peer?.isLoopback ?? false
    case .anyone: true
    case .nobody, .origin: false
    }
  }
}

extension SocketAddress {
  /// Whether the address is in 127.0.0.0/8, is ::1, is an IPv4-mapped loopback address, or is a Unix domain socket.
  var isLoopback: Bool {
    if case .unixDomainSocket = self { return true }
    guard let address = ipAddress else { return false }
    return address == "::1" || address.hasPrefix("127.") || address.hasPrefix("::ffff:127.")
  }
}
