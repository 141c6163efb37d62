#if Tool && Service
import Etagere
import Foundation
import HTTPServing
import HTTPTypes
import NIOCore

/// The responder of a port. It selects an endpoint by the whole path, or by one prefix of paths.
struct PortResponder: HTTPResponder {
  let endpoints: [String: Endpoint]
  /// The endpoint of all paths that begin with a prefix, which ends with a slash, and its label in the metrics.
  private var prefixEndpoint: (prefix: String, label: String, endpoint: Endpoint)?
  var log: AccessLog?
  var metrics: RequestMetrics?
  private let dates = DateField()

  /// - Parameters:
  ///   - endpoints: The endpoints by their paths.
  ///   - prefixEndpoint: The endpoint of all paths that begin with a prefix. The prefix ends with a slash.
  init(_ endpoints: [String: Endpoint], prefixEndpoint: (prefix: String, endpoint: Endpoint)? = nil) {
    self.endpoints = endpoints
    self.prefixEndpoint = prefixEndpoint.map { ($0.prefix, "\($0.prefix)**", $0.endpoint) }
  }

  func respond(to request: ServerRequest) async -> ServerResponse {
    let began = ContinuousClock.now
    let (label, endpoint) = endpoint(of: request.head.path ?? "")
    let response = await endpoint?.respond(to: request) ?? ServerResponse(.notFound, "no such path")
    return recorded(response, request, from: request.peer, label, since: began)
  }

  func respond(to refusal: RequestRefusal, peer: SocketAddress?) -> ServerResponse {
    let response = ServerResponse(refusal.status, refusal.reason, error: CacheError(refusal))
    return recorded(response, nil, from: peer, "none", since: .now)
  }

  private func endpoint(of target: String) -> (label: String, endpoint: Endpoint?) {
    if let (prefix, label, endpoint) = prefixEndpoint, target.hasPrefix(prefix) { return (label, endpoint) }
    let path = String(target.prefix { $0 != "?" })
    return endpoints[path].map { (path, $0) } ?? ("none", nil)
  }

  /// Returns a response with `Date`, which is recorded when it was sent.
  private func recorded(
    _ response: ServerResponse, _ request: ServerRequest?, from peer: SocketAddress?, _ label: String,
    since began: ContinuousClock.Instant
  ) -> ServerResponse {
    var response = response
    response.onFailure = { error in
      recorded(
        ServerResponse(error.responseStatus, "the body cannot be read", error: error), request, from: peer, label, since: began)
    }
    if response.head.headerFields[.date] == nil { response.head.headerFields[.date] = dates.value }
    guard log != nil || metrics != nil else { return response }
    let (head, error) = (response.head, response.error)
    response.onEnd = { [log, metrics] delivery in
      let duration = ContinuousClock.now - began
      // A client that leaves cancels its request. The status of the cancelled request was not sent.
      metrics?.record(route: label, status: delivery.isComplete ? "\(head.status.code)" : "aborted", duration)
      log?.write(request, from: peer, head, error ?? delivery.error, delivery, duration)
    }
    return response
  }
}

/// A path of a port: its methods and its handler.
struct Endpoint: Sendable {
  typealias Handler = @Sendable (ServerRequest) async -> ServerResponse

  /// The methods that the handler gets, or `nil` for all. Other methods get 405.
  private let methods: [HTTPRequest.Method]?
  private let handler: Handler

  /// Creates an endpoint with the given methods, or with all of them.
  init(_ methods: [HTTPRequest.Method]? = nil, _ handler: @escaping Handler) {
    (self.methods, self.handler) = (methods, handler)
  }

  static func get(_ handler: @escaping Handler) -> Endpoint { Endpoint([.get, .head], handler) }

  func respond(to request: ServerRequest) async -> ServerResponse {
    guard let methods, !methods.contains(request.head.method) else { return await handler(request) }
    var response = ServerResponse(.methodNotAllowed, "the path does not support this method")
    response.head.headerFields[.allow] = methods.map(\.rawValue).joined(separator: ", ")
    return response
  }
}

extension ServerResponse {
  /// Creates a response of one line of text.
  init(_ status: HTTPResponse.Status, _ line: String, error: CacheError? = nil) {
    let fields: HTTPFields = [.contentType: "text/plain; charset=utf-8", .xContentTypeOptions: "nosniff"]
    self.init(head: HTTPResponse(status: status, headerFields: fields), body: ResourceBody(Data("\(line)\n".utf8)))
    self.error = error
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
