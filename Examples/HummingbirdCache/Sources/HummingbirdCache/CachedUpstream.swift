// A Hummingbird middleware over `ResourceManager.respond(to:)`. Copy this file without the `#if` around it.
import CacheCore
import CacheManager
import HTTPTypes
import Hummingbird

/// A middleware that serves GET requests below a path from an upstream server, through an HTTP cache (RFC 9111).
///
/// Other methods go to the routes. That includes HEAD, which a server must support (RFC 9110 §9.1): add a route for it, or see
/// the gateway.
struct CachedUpstream<Context: RequestContext>: RouterMiddleware {
  let manager: ResourceManager
  /// The host and port of the upstream server.
  let upstream: String
  /// The prefix of the paths that the upstream serves. Its other paths do not become public.
  let path: String

  func handle(_ request: Request, context: Context, next: (Request, Context) async throws -> Response) async throws -> Response {
    guard request.method == .get, request.uri.path.hasPrefix(path) else { return try await next(request, context) }
    guard !request.uri.path.leavesFolder else { throw HTTPError(.badRequest, message: "the path has a '..' segment") }
    var head = request.head
    (head.scheme, head.authority, head.headerFields) = ("http", upstream, head.headerFields.endToEnd())
    let response: CachedResponse
    do throws(CacheError) {
      response = try await manager.respond(to: head)
    } catch {
      throw HTTPError(error)
    }
    let body = ResponseBody { writer in
      for try await chunk in response.body { try await writer.write(ByteBuffer(bytes: chunk)) }
      try await writer.finish(nil)
    }
    return Response(status: response.head.status, headers: response.head.headerFields.endToEnd(), body: body)
  }
}

extension String {
  /// Whether a segment of the path is `..`, which would lead out of the public paths. Some servers decode a path before they
  /// split it, accept a backslash as a separator, or ignore what follows a semicolon.
  fileprivate var leavesFolder: Bool {
    let decoded = lowercased().replacing("%2e", with: ".").replacing("%2f", with: "/").replacing("%5c", with: "/")
    return decoded.split { "/\\;".contains($0) }.contains("..")
  }
}

extension HTTPError {
  /// The response to a client when the upstream server fails: 504 or 502 (RFC 9110 §15.6.3, §15.6.5).
  init(_ error: CacheError) {
    let isTimeout = error.code == .timedOut || error.code == .revalidationFailed
    self.init(isTimeout ? .gatewayTimeout : .badGateway, message: error.reason)
  }
}
