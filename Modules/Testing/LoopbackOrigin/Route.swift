#if Origin
internal import CacheCore
public import HTTPTypes

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// The response of a path: one fixed response, several in turn, or the result of a closure.
public struct Route: Sendable {
  enum Source: Sendable {
    case fixed(OriginResponse)
    case turns(ResponseSequence)
    case closure(@Sendable (ReceivedRequest) async -> OriginResponse)
  }

  let source: Source

  /// Creates a route with one response for every request. Conditions and ranges are evaluated each time.
  public init(_ response: OriginResponse) { source = .fixed(response) }

  /// Creates a route with the same bytes for every request. The parameters are those of `OriginResponse`.
  public init(
    _ body: Data, contentType: String? = nil, etag: OriginETag? = nil, lastModified: Date? = nil, fields: HTTPFields = [:],
    status: HTTPResponse.Status = .ok, acceptsRanges: Bool = false, credential: OriginCredential? = nil,
    delivery: OriginDelivery = OriginDelivery()
  ) {
    self.init(
      OriginResponse(
        body, contentType: contentType, etag: etag, lastModified: lastModified, fields: fields, status: status,
        acceptsRanges: acceptsRanges, credential: credential, delivery: delivery))
  }

  /// Creates a route that gives the responses in turn, across all clients. The last one is repeated. An empty array means an
  /// empty 200.
  public init(inTurn responses: [OriginResponse]) { source = .turns(ResponseSequence(responses)) }

  /// Creates a route with a closure that creates the response to each request. The closure is retained while the route is set or
  /// a request is in progress. Its task is cancelled if the client disconnects or the origin stops.
  public init(handler: @escaping @Sendable (ReceivedRequest) async -> OriginResponse) { source = .closure(handler) }

  /// Creates a route with a short response that has a fault.
  public static func fault(_ fault: OriginFault) -> Self { Self(OriginResponse(text: "faulty", delivery: .fault(fault))) }

  /// Creates a redirect. See `OriginResponse.redirect(to:status:)`.
  public static func redirect(to location: String, status: HTTPResponse.Status = .found) -> Self {
    Self(.redirect(to: location, status: status))
  }
}

/// The routes of an origin.
final class RouteTable: Sendable {
  private struct State: Sendable {
    var routes: [String: Route] = [:]
    var fallback: Route
    var proxyCredential: OriginCredential?
  }

  private let state: Lock<State>

  init(fallback: Route) { state = Lock(State(fallback: fallback)) }

  func set(_ route: Route?, for target: String) { state.withLock { $0.routes[target] = route } }

  func setFallback(_ route: Route) { state.withLock { $0.fallback = route } }

  func setProxyCredential(_ credential: OriginCredential?) { state.withLock { $0.proxyCredential = credential } }

  func removeAll() { state.withLock { $0.routes = [:] } }

  /// Returns the route for a request. A route with a query matches that query only and takes precedence.
  func route(for request: ReceivedRequest) -> Route {
    state.withLock { state in
      if request.isProxied {
        if let credential = state.proxyCredential, !credential.accepts(request.fields[.proxyAuthorization]) {
          return Route(
            OriginResponse(
              text: "proxy credential required\n", status: .proxyAuthenticationRequired,
              fields: [.proxyAuthenticate: credential.challenge]))
        }
        // A tunnel would need a second server at its other end.
        if request.method == .connect {
          return Route(OriginResponse(text: "CONNECT is not supported\n", status: .notImplemented))
        }
      }
      return state.routes[request.target] ?? state.routes[request.path] ?? state.fallback
    }
  }
}

/// Responses that are given in turn, on the connection's own thread. They need no task, so a busy machine does not delay them.
final class ResponseSequence: Sendable {
  private let responses: [OriginResponse]
  private let last: OriginResponse
  private let next = Lock(0)

  init(_ responses: [OriginResponse]) {
    self.responses = responses
    last = responses.last ?? OriginResponse()
  }

  func take() -> OriginResponse {
    let index = next.withLock { next in
      defer { next += 1 }
      return next
    }
    return index < responses.count ? responses[index] : last
  }
}

/// A `Range` field applied to a body of a known length (RFC 9110 §14.1.2).
enum ByteRange: Hashable {
  /// Another unit, several ranges or a malformed value. The whole body is sent.
  case ignored
  case unsatisfiable
  case bytes(Range<Int>)

  static func parse(_ value: String, length: Int) -> Self {
    let parts = value.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
    guard parts.count == 2, parts[0].lowercased() == "bytes", !parts[1].contains(",") else { return .ignored }
    let ends = String(parts[1]).trimmed.split(separator: "-", omittingEmptySubsequences: false)
    guard ends.count == 2, let first = position(ends[0]), let last = position(ends[1]) else { return .ignored }
    switch (first, last) {
    case (nil, nil): return .ignored
    case (nil, let suffix?): return suffix > 0 && length > 0 ? .bytes(max(0, length - suffix)..<length) : .unsatisfiable
    case (let first?, let last?) where last < first: return .ignored
    case (let first?, let last): return first < length ? .bytes(first..<min(length - 1, last ?? .max) + 1) : .unsatisfiable
    }
  }

  /// Parses a position. The outer `nil` means an invalid number, the inner `nil` an empty text. Numbers too large for an `Int`
  /// become its maximum.
  private static func position(_ text: Substring) -> Int?? {
    guard text.utf8.allSatisfy({ (48...57).contains($0) }) else { return .none }
    return text.isEmpty ? .some(nil) : .some(Int(text) ?? .max)
  }
}
#endif
