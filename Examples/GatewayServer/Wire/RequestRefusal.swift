#if Gateway
import HTTPTypes

/// Why a request is not served: a status, and one line for whoever sent it. Its connection is closed, since where the next
/// request begins is anybody's guess.
struct RequestRefusal: Error, Hashable {
  var status: HTTPResponse.Status
  var reason: String

  /// What came is not HTTP/1.1, or may be read in two ways (RFC 9112 §2.2, §11.2).
  static func malformed(_ reason: String) -> Self { Self(status: .badRequest, reason: reason) }

  /// The header section has more bytes or fields than are read (RFC 6585 §5).
  static func fieldsTooLarge(_ reason: String) -> Self {
    Self(status: .requestHeaderFieldsTooLarge, reason: reason)
  }

  /// It asks for something that nobody here does (RFC 9110 §15.6.2).
  static func notImplemented(_ reason: String) -> Self { Self(status: .notImplemented, reason: reason) }
}
#endif
