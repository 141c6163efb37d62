#if Gateway
public import CacheCore
public import HTTPTypes
public import NIOCore

/// A request without the fields about one connection.
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
  /// Returns a response as soon as its head is known. The body streams.
  func respond(to request: ProxyRequest) async throws(CacheError) -> ProxyAnswer
}
#endif
