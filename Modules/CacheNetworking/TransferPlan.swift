internal import CacheCore
internal import Foundation
internal import HTTPTypes

/// One request and everything that is decided before its transfer is created.
struct TransferPlan: Sendable {
  /// The method, URL and fields, including those that the configuration adds.
  var head: HTTPRequest
  var url: URL
  var body: OutgoingBody
  var idleTimeout: Duration
  var networkAccess: NetworkAccess
  /// The proxy of the request, or `nil` if there is none or it is unknown.
  var proxy: ProxySettings.Proxy?
  /// The largest body, in bytes, that the reader gets together with the head, or 0 to wake it at the head.
  var collectUpTo = 0

  /// Whether a proxy's response to CONNECT precedes the server's. Foundation on Linux reports both.
  var isTunnelled: Bool {
    #if canImport(FoundationNetworking)
    guard let proxy, proxy.kind != .socks5 else { return false }
    return url.scheme?.lowercased() == "https"
    #else
    return false
    #endif
  }
}
