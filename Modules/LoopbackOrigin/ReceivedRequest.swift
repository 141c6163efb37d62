#if Origin
  public import HTTPTypes
  #if canImport(FoundationEssentials)
    public import FoundationEssentials
  #else
    public import Foundation
  #endif

  /// A request as the origin read it, whole.
  public struct ReceivedRequest: Sendable, Hashable {
    /// Method, target (path with query, as it stood on the wire), and fields.
    public var head: HTTPRequest
    /// The body, without chunk framing.
    public var body: Data
    /// Position among all requests of the origin, from 0, in the order in which they were complete.
    public var order: Int
    /// Number of the connection that it came over, from 0, in the order of acceptance.
    public var connection: Int

    var isHTTP10 = false
    var asksToClose = false

    /// A request of a test's own, to try a handler with.
    public init(head: HTTPRequest, body: Data = Data(), order: Int = 0, connection: Int = 0) {
      (self.head, self.body, self.order, self.connection) = (head, body, order, connection)
    }

    /// The method.
    public var method: HTTPRequest.Method { head.method }
    /// The header fields.
    public var fields: HTTPFields { head.headerFields }
    /// Path and query, as they stood on the wire.
    public var target: String { head.path ?? "/" }
    /// The path alone, percent-encoded as on the wire.
    public var path: String { String(target.prefix { $0 != "?" }) }
    /// What follows the first question mark, if there is one.
    public var query: String? { target.firstIndex(of: "?").map { String(target[target.index(after: $0)...]) } }
    /// Whether the request has `If-None-Match` or `If-Modified-Since`.
    public var isConditional: Bool { fields.contains(.ifNoneMatch) || fields.contains(.ifModifiedSince) }
  }
#endif
