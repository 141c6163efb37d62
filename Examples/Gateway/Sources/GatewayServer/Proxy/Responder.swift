public import CacheCore
public import HTTPServing

/// A handler of requests: the origin, the cache, or a page.
public protocol Responder: Sendable {
  /// Returns a response as soon as its head is known. The body streams.
  func respond(to request: ServerRequest) async throws(CacheError) -> ProxyAnswer
}
