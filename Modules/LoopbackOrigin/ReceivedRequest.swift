#if Origin
public import HTTPTypes
#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A complete request as the origin received it. Body bytes beyond the origin's limit are not included.
public struct ReceivedRequest: Sendable, Hashable {
  /// The method, the path with the query (as received), and the fields.
  public var head: HTTPRequest
  /// The body without chunk framing, up to the origin's `recordedBodyLimit`.
  public var body: Data
  /// The number of bytes of the whole body.
  public var bodyLength: Int
  /// The digest of the whole body if it is longer than ``body``, otherwise `nil`. Compare it with `digest(of:)`.
  public var bodyDigest: UInt64?
  /// The position among all requests of the origin, from 0, in the order of completion.
  public var order: Int
  /// The number of the request's connection, from 0, in the order of acceptance.
  public var connection: Int
  /// The target as received, if the client used the origin as its proxy: in absolute form (`http://host/a?b`, RFC 9112 §3.2.2) or
  /// as `host:port` for CONNECT (§3.2.3). `nil` for an ordinary request. `head` has the scheme, authority and path of the target,
  /// so routes match by path for any host.
  public var proxyTarget: String?

  var isHTTP10 = false
  var requestsClose = false

  /// Creates a request for a test of a handler.
  public init(head: HTTPRequest, body: Data = Data(), order: Int = 0, connection: Int = 0) {
    (self.head, self.body, self.order, self.connection) = (head, body, order, connection)
    bodyLength = body.count
  }

  /// Returns the `bodyDigest` of a body with these bytes: 64-bit FNV-1a.
  public static func digest(of body: Data) -> UInt64 { ReceivedBody.digest(of: body) }

  /// Whether the client used the origin as its proxy.
  public var isProxied: Bool { proxyTarget != nil }
  /// The method.
  public var method: HTTPRequest.Method { head.method }
  /// The header fields.
  public var fields: HTTPFields { head.headerFields }
  /// The path and query as received. For a proxy request, those of its target.
  public var target: String { head.path ?? "/" }
  /// The path in percent-encoded form, as received, without the query.
  public var path: String { String(target.prefix { $0 != "?" }) }
  /// The query after the first question mark, or `nil` if there is none.
  public var query: String? { target.firstIndex(of: "?").map { String(target[target.index(after: $0)...]) } }
  /// Whether the request has `If-None-Match` or `If-Modified-Since`.
  public var isConditional: Bool { fields.contains(.ifNoneMatch) || fields.contains(.ifModifiedSince) }
}
#endif
