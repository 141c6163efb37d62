#if Gateway
import CacheCore
import HTTPTypes
import NIOCore

/// A request as it stands behind the connection: end-to-end fields only, in their order.
struct ProxyRequest: Sendable {
  /// Scheme, host and path as the client sees them: what a cache keys by.
  var head: HTTPRequest
  /// What the client sends with it, streamed; nil: nothing.
  var body: ResourceBody?
  /// Who asks.
  var peer: SocketAddress?
}

/// What is done about a request: an origin asked, a cache looked into, a page made.
protocol Responder: Sendable {
  /// Returns when the answer's head is there.
  func respond(to request: ProxyRequest) async throws(CacheError) -> ProxyAnswer
}
#endif
