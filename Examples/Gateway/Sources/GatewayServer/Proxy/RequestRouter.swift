import CacheCore
import HTTPServing
import HTTPTypes
import NIOCore

/// A responder that handles requests to the gateway itself, and forwards all others.
struct RequestRouter: Responder {
  let next: any Responder
  var purging: any Purging
  var purgers = PurgePermission.loopback
  /// Whether requests to the origin get `X-Forwarded-For`, `X-Forwarded-Host` and `X-Forwarded-Proto`.
  var forwards = false
  var clock: any CacheClock = SystemClock()

  func respond(to request: ServerRequest) async throws(CacheError) -> ProxyAnswer {
    let method = request.head.method
    // `OPTIONS *` is about the server itself, which is the gateway (RFC 9110 §9.3.7).
    if request.head.path == "*" { return own(.ok, "this is a gateway") }
    if method.rawValue == "PURGE", purgers != .origin { return try await purge(request) }
    if method == .trace, request.body != nil { return own(.badRequest, "TRACE must not have a body") }  // RFC 9110 §9.3.8
    var request = request
    if method == .trace || method == .options, let hops = request.head.headerFields[.maxForwards] {
      guard let hops = Int(hops), hops >= 0 else { return own(.badRequest, "Max-Forwards is not a number") }
      // The last recipient responds (RFC 9110 §7.6.2). A TRACE response would disclose internal fields.
      guard hops > 0 else { return own(method == .trace ? .methodNotAllowed : .ok, "Max-Forwards is 0") }
      request.head.headerFields[.maxForwards] = String(hops - 1)
    }
    if forwards { tellClient(in: &request) }
    return try await next.respond(to: request)
  }

  private func purge(_ request: ServerRequest) async throws(CacheError) -> ProxyAnswer {
    guard purgers.allows(request.peer) else { return own(.forbidden, "PURGE is not allowed for this client") }
    guard !request.isCrossSite else { return own(.forbidden, "PURGE is not allowed for pages of other sites") }
    request.body?.source.cancel()
    let count = try await purging.purge(request.head)
    return own(count > 0 ? .ok : .notFound, count > 0 ? "purged" : "nothing was stored")
  }

  private func tellClient(in request: inout ServerRequest) {
    var fields = request.head.headerFields
    if let address = request.peer?.ipAddress { fields.append("X-Forwarded-For", address) }
    if let host = request.head.authority { fields.append("X-Forwarded-Host", host) }
    fields.append("X-Forwarded-Proto", "http")
    request.head.headerFields = fields
  }

  private func own(_ status: HTTPResponse.Status, _ text: String) -> ProxyAnswer {
    ProxyAnswer(status, text: text, date: clock.now)
  }
}
