#if Gateway
public import CacheCore
public import HTTPTypes
public import NIOCore

/// A request as it stands behind the connection: end-to-end fields only, in their order.
public struct ProxyRequest: Sendable {
  /// The head, with scheme, host and path as the client sees them. They are the key in the cache.
  public var head: HTTPRequest
  /// The body, which streams, or `nil` for none.
  public var body: ResourceBody?
  /// The address of the client.
  public var peer: SocketAddress?
}

/// A handler of requests: the origin, the cache, or a page.
public protocol Responder: Sendable {
  /// Returns when the head of the response is there.
  func respond(to request: ProxyRequest) async throws(CacheError) -> ProxyAnswer
}
#endif
