public import CacheCore
public import HTTPServing
import HTTPTypes

/// A handler of requests: the origin, the cache, or a page.
public protocol Responder: Sendable {
  /// Returns a response as soon as its head is known. The body streams.
  func respond(to request: ServerRequest) async throws(CacheError) -> ProxyAnswer
}

extension ServerRequest {
  /// Sends an interim response of the origin to the client. The server itself sends 100 (Continue), when the body is wanted.
  func forward(_ interim: HTTPResponse) { if interim.status != .continue { sendInterimResponse(interim) } }
}
