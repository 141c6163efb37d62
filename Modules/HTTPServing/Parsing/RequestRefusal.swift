#if Service
public import HTTPTypes

/// The reason why a request is refused: a status, and one line for the client. The connection is closed, because the start of the
/// next request is unknown.
public struct RequestRefusal: Error, Hashable {
  public var status: HTTPResponse.Status
  public var reason: String

  /// The bytes are not HTTP/1.1, or they are ambiguous (RFC 9112 §2.2, §11.2).
  static func malformed(_ reason: String) -> Self { Self(status: .badRequest, reason: reason) }

  /// The header section has too many bytes or fields (RFC 6585 §5).
  static func fieldsTooLarge(_ reason: String) -> Self {
    Self(status: .requestHeaderFieldsTooLarge, reason: reason)
  }

  /// The request needs a function that the server does not have (RFC 9110 §15.6.2).
  static func notImplemented(_ reason: String) -> Self { Self(status: .notImplemented, reason: reason) }
}
#endif
