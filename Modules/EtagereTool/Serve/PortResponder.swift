#if Tool && Service
import Etagere
import Foundation
import HTTPServing
import HTTPTypes
import NIOCore

/// The responder of a port: its endpoints by their paths, and at most one endpoint for all paths below a prefix.
struct PortResponder: HTTPResponder {
  let endpoints: [String: Endpoint]
  /// The endpoint of all paths that begin with a prefix. The prefix ends with a slash.
  var prefixed: (prefix: String, endpoint: Endpoint)?
  var log: AccessLog?
  var metrics: RequestMetrics?
  private let dates = DateField()

  init(_ endpoints: [String: Endpoint]) { self.endpoints = endpoints }

  func respond(to request: ServerRequest) async -> ServerResponse {
    let began = ContinuousClock.now
    let (label, endpoint) = endpoint(of: request.head.path ?? "")
    let reply = await endpoint?.reply(to: request) ?? Reply(.notFound, "no such path")
    return recorded(reply, request, from: request.peer, label, since: began)
  }

  func respond(to refusal: RequestRefusal, peer: SocketAddress?) -> ServerResponse {
    let reply = Reply(refusal.status, refusal.reason, error: CacheError(refusal))
    return recorded(reply, nil, from: peer, "none", since: .now)
  }

  private func endpoint(of target: String) -> (label: String, endpoint: Endpoint?) {
    if let prefixed, target.hasPrefix(prefixed.prefix) { return ("\(prefixed.prefix)**", prefixed.endpoint) }
    let path = String(target.prefix { $0 != "?" })
    return endpoints[path].map { (path, $0) } ?? ("none", nil)
  }

  /// Returns the response of a reply, which is recorded when it was sent.
  private func recorded(
    _ reply: Reply, _ request: ServerRequest?, from peer: SocketAddress?, _ label: String,
    since began: ContinuousClock.Instant
  ) -> ServerResponse {
    var response = reply.response
    if response.head.headerFields[.date] == nil { response.head.headerFields[.date] = dates.value }
    guard log != nil || metrics != nil else { return response }
    let head = response.head
    response.onEnd = { [log, metrics] delivery in
      let duration = ContinuousClock.now - began
      metrics?.record(route: label, head.status, duration)
      log?.write(request, from: peer, head, reply.error, delivery, duration)
    }
    return response
  }
}

/// A path of a port: its methods and its handler.
struct Endpoint: Sendable {
  typealias Handler = @Sendable (ServerRequest) async -> Reply

  /// The methods that the handler gets, or `nil` for all. Other methods get 405.
  private let methods: [HTTPRequest.Method]?
  private let handler: Handler

  /// Creates an endpoint with the given methods, or with all of them.
  init(_ methods: [HTTPRequest.Method]? = nil, _ handler: @escaping Handler) {
    (self.methods, self.handler) = (methods, handler)
  }

  static func get(_ handler: @escaping Handler) -> Endpoint { Endpoint([.get, .head], handler) }

  func reply(to request: ServerRequest) async -> Reply {
    guard let methods, !methods.contains(request.head.method) else { return await handler(request) }
    var reply = Reply(.methodNotAllowed, "the path does not support this method")
    reply.response.head.headerFields[.allow] = methods.map(\.rawValue).joined(separator: ", ")
    return reply
  }
}

/// A response, and the error that caused it, for the log.
struct Reply: Sendable {
  var response: ServerResponse
  var error: CacheError?

  init(_ response: ServerResponse, error: CacheError? = nil) { (self.response, self.error) = (response, error) }

  /// Creates a reply of one line of text.
  init(
    _ status: HTTPResponse.Status, _ line: String, error: CacheError? = nil, type: String = "text/plain; charset=utf-8"
  ) {
    let head = HTTPResponse(status: status, headerFields: [.contentType: type])
    self.init(ServerResponse(head: head, body: ResourceBody(Data("\(line)\n".utf8))), error: error)
  }
}

/// The value of `Date` (RFC 9110 §6.6.1), which is made once per second.
private final class DateField: Sendable {
  private let made = Lock<(second: Int64, text: String)>((0, ""))

  var value: String {
    let now = SystemClock().now
    return made.withLock { made in
      if made.second != now.seconds { made = (now.seconds, HTTPDate(now).description) }
      return made.text
    }
  }
}
#endif
