#if Gateway
import CacheCore
import HTTPTypes
public import NIOCore

/// What can forget an answer.
protocol Purging: Sendable {
  /// Forgets what is stored for the URL of a request; returns how many answers that were.
  func purge(_ request: HTTPRequest) async throws(CacheError) -> Int
}

/// Nothing is stored, so there is nothing to forget.
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

  /// Whether a client with this address may purge.
  public func allows(_ peer: SocketAddress?) -> Bool {
    switch self {
    case .loopback: peer?.isLoopback ?? false
    case .anyone: true
    case .nobody, .origin: false
    }
  }
}

extension SocketAddress {
  /// Whether it is 127.0.0.0/8 or ::1, or the former written as the latter, or a socket of the file system.
  var isLoopback: Bool {
    if case .unixDomainSocket = self { return true }
    guard let address = ipAddress else { return false }
    return address == "::1" || address.hasPrefix("127.") || address.hasPrefix("::ffff:127.")
  }
}
#endif
