#if Service
public import CacheCore
public import HTTPTypes
public import NIOCore

/// A handler of requests.
public protocol HTTPResponder: Sendable {
  /// Returns a response as soon as its head is known. The body streams.
  ///
  /// This function runs on the event loop of the connection, so it must not block.
  func respond(to request: ServerRequest) async -> ServerResponse

  /// Returns the response to bytes that are not a valid request. Its body is in memory. The connection is closed after it.
  ///
  /// - Parameters:
  ///   - refusal: The status, and the reason in one line.
  ///   - peer: The address of the client.
  func respond(to refusal: RequestRefusal, peer: SocketAddress?) -> ServerResponse
}

/// A request without the fields about one connection (RFC 9110 §7.6.1).
public struct ServerRequest: Sendable {
  /// The head, with scheme, host and path as the client sees them.
  public var head: HTTPRequest
  /// The body, which streams, or `nil` for none.
  ///
  /// If the client sends an invalid body, its reader gets `CacheError.Code.badRequest` with the status.
  public var body: ResourceBody?
  /// The address of the client.
  public var peer: SocketAddress?
  /// The target exactly as the client sent it, for a log.
  public var target: String
  /// Whether the version is HTTP/1.0.
  public var isHTTP10: Bool
}

/// A response to a client.
public struct ServerResponse: Sendable {
  /// The part of a response that was sent.
  public struct Delivery: Sendable {
    /// The body bytes, without head and framing.
    public var bodyBytes: Int64 = 0
    /// Whether the response was sent completely. False if the client or the source of the body ended it early.
    public var isComplete = false
  }

  /// The status, the reason phrase and the fields. The connection adds the fields about itself.
  public var head: HTTPResponse
  public var body: ResourceBody
  /// Whether the connection is closed after the response.
  public var closes = false
  /// Called when the response was sent, or when its connection has ended before.
  public var onEnd: (@Sendable (Delivery) -> Void)?

  public init(head: HTTPResponse, body: ResourceBody) { (self.head, self.body) = (head, body) }
}

extension CacheError.Code {
  /// The client's request became invalid after its head was accepted. `CacheError.status` is the status for it.
  public static let badRequest = Self(rawValue: "badRequest")

  /// The port cannot be opened.
  public static let cannotListen = Self(rawValue: "cannotListen")
}

extension CacheError {
  /// Creates the error of a reader of an invalid body.
  public init(_ refusal: RequestRefusal) {
    self.init(.badRequest, reason: refusal.reason, status: refusal.status.code)
  }
}
#endif
