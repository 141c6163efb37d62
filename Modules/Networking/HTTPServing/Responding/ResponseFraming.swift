#if Server
import HTTPTypes

/// The framing of a response, which tells the client where the body ends (RFC 9112 §6).
package enum ResponseFraming: Hashable, Sendable {
  /// No body is sent. `Content-Length` states the size that a `GET` would return (RFC 9110 §8.6).
  case headOnly
  /// The status forbids a body and `Content-Length`.
  case noContent
  case length(Int64)
  case chunked
  /// The body ends with the connection, because HTTP/1.0 has no chunks.
  case untilClose

  /// Selects the framing of a response.
  ///
  /// - Parameters:
  ///   - method: The method of the request.
  ///   - status: The status of the response.
  ///   - length: The length of the body, or `nil` if it is unknown.
  ///   - isHTTP10: Whether the client uses HTTP/1.0.
  init(method: HTTPRequest.Method, status: HTTPResponse.Status, length: Int64?, isHTTP10: Bool) {
    if status.code == 204 {
      self = .noContent
    } else if status.code == 304 || method == .head {
      self = .headOnly
    } else if let length {
      self = .length(length)
    } else {
      self = isHTTP10 ? .untilClose : .chunked
    }
  }

  /// Whether a body is sent.
  var hasBody: Bool {
    switch self {
    case .headOnly, .noContent: false
    case .length, .chunked, .untilClose: true
    }
  }
}
#endif
