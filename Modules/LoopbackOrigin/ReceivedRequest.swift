#if Origin
public import HTTPTypes
#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A request as the origin read it, whole, but for the body's bytes beyond what the origin keeps.
public struct ReceivedRequest: Sendable, Hashable {
  /// Method, path with query (as they stood on the wire), and fields.
  public var head: HTTPRequest
  /// The body, without chunk framing; no more of it than the origin's `keptBodyLimit`.
  public var body: Data
  /// Bytes of the whole body.
  public var bodyLength: Int
  /// A digest of the whole body where it is longer than what is kept of it, else nil: compare with `digest(of:)`.
  public var bodyDigest: UInt64?
  /// Position among all requests of the origin, from 0, in the order in which they were complete.
  public var order: Int
  /// Number of the connection that it came over, from 0, in the order of acceptance.
  public var connection: Int
  /// The target as it stood on the wire, where the client took the origin for its proxy: in absolute form (`http://host/a?b`, RFC
  /// 9112 §3.2.2), or CONNECT's `host:port` (§3.2.3). Nil for an ordinary request. `head` has the target's scheme, authority and
  /// path, so routes answer by path, whatever the host.
  public var proxyTarget: String?

  var isHTTP10 = false
  var asksToClose = false

  /// A request of a test's own, to try a handler with.
  public init(head: HTTPRequest, body: Data = Data(), order: Int = 0, connection: Int = 0) {
    (self.head, self.body, self.order, self.connection) = (head, body, order, connection)
    bodyLength = body.count
  }

  /// What `bodyDigest` is for a body of these bytes: 64-bit FNV-1a.
  public static func digest(of body: Data) -> UInt64 { ReceivedBody.digest(of: body) }

  /// Whether the client took the origin for its proxy.
  public var isProxied: Bool { proxyTarget != nil }
  /// The method.
  public var method: HTTPRequest.Method { head.method }
  /// The header fields.
  public var fields: HTTPFields { head.headerFields }
  /// Path and query, as they stood on the wire; of a proxied request those of its target.
  public var target: String { head.path ?? "/" }
  /// The path alone, percent-encoded as on the wire.
  public var path: String { String(target.prefix { $0 != "?" }) }
  /// What follows the first question mark, if there is one.
  public var query: String? { target.firstIndex(of: "?").map { String(target[target.index(after: $0)...]) } }
  /// Whether the request has `If-None-Match` or `If-Modified-Since`.
  public var isConditional: Bool { fields.contains(.ifNoneMatch) || fields.contains(.ifModifiedSince) }
}
#endif
