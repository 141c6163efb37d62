#if Service
import HTTPTypes

/// The host and the path of a request, from the target in any of its forms (RFC 9112 §3.2) and from `Host`.
struct RequestTarget: Hashable, Sendable {
  /// The host and port as the client sent them, or `nil` if an HTTP/1.0 client sent none.
  var authority: String?
  /// The path and query, unchanged, or `*` for `OPTIONS *`.
  var path: String

  /// Parses the target of a request.
  ///
  /// - Parameters:
  ///   - text: The target, in visible ASCII.
  ///   - method: The method. `CONNECT` and `OPTIONS` have special target forms.
  ///   - fields: All fields of the request.
  ///   - isHTTP10: Whether the client uses HTTP/1.0, which allows a missing `Host`.
  init(_ text: String, method: HTTPRequest.Method, fields: HTTPFields, isHTTP10: Bool) throws(RequestRefusal) {
    guard method != .connect else { throw .notImplemented("CONNECT is not supported") }
    authority = nil
    for field in fields where field.name.canonicalName == "host" {
      guard authority == nil else { throw .malformed("more than one Host") }
      authority = field.value
    }
    guard isHTTP10 || authority != nil else { throw .malformed("Host is missing") }
    if let authority, !Authority.isValid(authority) { throw .malformed("invalid Host") }
    guard !text.utf8.contains(UInt8(ascii: "#")) else { throw .malformed("the target contains a fragment") }
    if text.utf8.first == UInt8(ascii: "/") {
      path = text
    } else if text == "*", method == .options {
      path = text
    } else {
      (authority, path) = try Self.absolute(text)
    }
  }

  /// Parses the absolute form, which every server must accept. It takes precedence over `Host` (RFC 9112 §3.2.2).
  private static func absolute(_ text: String) throws(RequestRefusal) -> (String, String) {
    guard let separator = text.firstRange(of: "://") else { throw .malformed("the target is neither a path nor a URL") }
    let scheme = text[..<separator.lowerBound].lowercased()
    guard scheme == "http" || scheme == "https" else { throw .malformed("the target is not an http or https URL") }
    let rest = text[separator.upperBound...]
    let end = rest.firstIndex { $0 == "/" || $0 == "?" } ?? rest.endIndex
    let authority = String(rest[..<end])
    guard Authority.isValid(authority) else { throw .malformed("invalid host in the target") }
    let path = rest[end...]
    return (authority, path.hasPrefix("/") ? String(path) : "/\(path)")
  }
}
#endif
