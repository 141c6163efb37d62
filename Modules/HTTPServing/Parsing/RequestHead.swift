#if Service
import CacheCore
package import HTTPTypes

/// The validated head of a request.
package struct RequestHead: Sendable {
  var method: HTTPRequest.Method
  /// The target exactly as the client sent it, for the log.
  var rawTarget: String
  var target: RequestTarget
  /// Whether the version is HTTP/1.0. Every other minor version is treated as 1.1 (RFC 9110 §2.5).
  var isHTTP10: Bool
  /// All fields, in order, with unchanged bytes.
  var fields: HTTPFields
  var framing: RequestFraming

  /// The head as an HTTP request. Its fields include `Host`.
  package var request: HTTPRequest {
    HTTPRequest(method: method, scheme: "http", authority: target.authority, path: target.path, headerFields: fields)
  }

  /// Whether the client wants to keep the connection open after the response (RFC 9112 §9.3).
  var keepsAlive: Bool {
    guard let connection = fields[.connection] else { return !isHTTP10 }
    let options = connection.split(separator: ",").map { Substring($0.utf8.trimmingBlanks()).lowercased() }
    if options.contains("close") { return false }
    return !isHTTP10 || options.contains("keep-alive")
  }

  /// Whether the client waits for `100 Continue` before it sends the body (RFC 9110 §10.1.1). HTTP/1.0 has no such mechanism.
  var expectsContinue: Bool { !isHTTP10 && fields[.expect]?.lowercased() == "100-continue" }

  /// Whether the client understands trailers (RFC 9110 §6.5.1).
  var acceptsTrailers: Bool {
    fields[.te]?.split(separator: ",").contains { Substring($0.utf8.trimmingBlanks()).lowercased() == "trailers" } ?? false
  }
}
#endif
