internal import CacheCore
internal import Foundation
internal import HTTPTypes

/// One request as it is going to be sent: everything that is settled before a transfer is made or joined.
struct TransferPlan: Sendable {
  /// Method, URL and fields, those that the configuration adds included.
  var head: HTTPRequest
  var url: URL
  var body: OutgoingBody
  var idleTimeout: Duration
  var networkAccess: NetworkAccess
  /// The proxy that it goes through, as far as that is known here.
  var proxy: ProxySettings.Proxy?

  /// Whether a proxy's answer to CONNECT comes before the server's: Foundation on Linux tells both.
  var isTunnelled: Bool {
    #if canImport(FoundationNetworking)
    guard let proxy, proxy.kind != .socks5 else { return false }
    return url.scheme?.lowercased() == "https"
    #else
    return false
    #endif
  }
}
