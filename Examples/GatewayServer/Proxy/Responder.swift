#if Gateway
public import CacheCore
public import HTTPTypes
public import NIOCore

/// A request as it stands behind the connection: end-to-end fields only, in their order.
public struct ProxyRequest: Sendable {
  /// Scheme, host and path as the client sees them: what a cache keys by.
  public var head: HTTPRequest
  /// What the client sends with it, streamed; nil: nothing.
  public var body: ResourceBody?
  /// Who asks.
  public var peer: SocketAddress?
}

/// What is done about a request: an origin asked, a cache looked into, a page made.
public protocol Responder: Sendable {
  /// Returns when the answer's head is there.
  func respond(to request: ProxyRequest) async throws(CacheError) -> ProxyAnswer
}
#endif
