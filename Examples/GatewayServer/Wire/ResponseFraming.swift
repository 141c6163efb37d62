#if Gateway
import HTTPTypes

/// How an answer tells the client where its body ends (RFC 9112 §6).
enum ResponseFraming: Hashable, Sendable {
  /// Status and fields are all there is; `Content-Length` tells what a `GET` would bring (RFC 9110 §8.6).
  case bodiless
  /// No body by its status, and no word about one.
  case none
  case length(Int64)
  case chunked
  /// The body ends with the connection: clients of HTTP/1.0 know no chunks.
  case untilClose

  /// - Parameters:
  ///   - method: the request's.
  ///   - status: the answer's.
  ///   - length: of the body, where it is known.
  ///   - isHTTP10: what the client speaks.
  init(method: HTTPRequest.Method, status: HTTPResponse.Status, length: Int64?, isHTTP10: Bool) {
    if status.code == 204 {
      self = .none
    } else if status.code == 304 || method == .head {
      self = .bodiless
    } else if let length {
      self = .length(length)
    } else {
      self = isHTTP10 ? .untilClose : .chunked
    }
  }

  /// Whether a body is sent.
  var hasBody: Bool {
    switch self {
    case .bodiless, .none: false
    case .length, .chunked, .untilClose: true
    }
  }
}
#endif
