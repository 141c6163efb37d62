#if Server
import CacheCore
public import HTTPTypes

/// The validated head of a request.
package struct RequestHead: Sendable {
  /// The head as an HTTP request. Its fields include `Host`, in order, with unchanged bytes.
  package let request: HTTPRequest
  /// The target exactly as the client sent it, for the log.
  let rawTarget: String
  /// Whether the version is HTTP/1.0. Every other minor version is treated as 1.1 (RFC 9110 §2.5).
  let isHTTP10: Bool
  let framing: RequestFraming

  /// Whether the client wants to keep the connection open after the response (RFC 9112 §9.3).
  var keepsAlive: Bool {
    guard let connection = request.headerFields[.connection] else { return !isHTTP10 }
    let options = connection.lowercasedMembers
    if options.contains("close") { return false }
    return !isHTTP10 || options.contains("keep-alive")
  }

  /// Whether the client waits for `100 Continue` before it sends the body (RFC 9110 §10.1.1). HTTP/1.0 has no such mechanism.
  var expectsContinue: Bool { !isHTTP10 && request.headerFields[.expect]?.lowercased() == "100-continue" }

  /// Whether the client understands trailers (RFC 9110 §6.5.1).
  var acceptsTrailers: Bool { request.headerFields[.te]?.lowercasedMembers.contains("trailers") == true }
}

/// The sizes above which a request is refused. Bodies have no limit because they stream.
struct RequestLimits: Hashable, Sendable {
  /// The largest target, in bytes. A longer one gets 414.
  var targetBytes = 16 * 1024
  /// The largest request line with header section, or trailer section, in bytes. A longer section gets 431, and a longer request
  /// line 414.
  var headBytes = 64 * 1024
  /// The largest number of fields in a section. More get 431.
  var fieldCount = 256
  /// The longest chunk size with its extensions, in bytes (RFC 9112 §7.1.1 says that a recipient ought to limit them).
  var chunkLineBytes = 4 * 1024
}

/// The reason why a request is refused: a status, and one line for the client. The connection is closed, because the start of the
/// next request is unknown.
public struct RequestRefusal: Error, Hashable {
  /// The status of the response, such as 400.
  public var status: HTTPResponse.Status
  /// The reason in one line.
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
