#if Gateway
import HTTPTypes

/// What a request is about: host and path, from the target in any of its forms (RFC 9112 §3.2) and from `Host`.
struct RequestTarget: Hashable, Sendable {
  /// Host and port as the client named them; nil: a client of HTTP/1.0 named none.
  var authority: String?
  /// Path and query as they stand; `*` of an `OPTIONS *`.
  var path: String

  /// - Parameters:
  ///   - text: visible ASCII.
  ///   - method: `CONNECT` and `OPTIONS` have forms of their own.
  ///   - fields: all that came.
  ///   - isHTTP10: `Host` may be missing.
  init(_ text: String, method: HTTPRequest.Method, fields: HTTPFields, isHTTP10: Bool) throws(RequestRefusal) {
    guard method != .connect else { throw .notImplemented("CONNECT: this is no tunnel") }
    let hosts = fields.filter { $0.name.canonicalName == "host" }.map(\.value)
    guard hosts.count <= 1 else { throw .malformed("more than one Host") }
    guard isHTTP10 || hosts.count == 1 else { throw .malformed("no Host") }
    if let host = hosts.first, !Self.isAuthority(host) { throw .malformed("Host is no host") }
    authority = hosts.first
    guard !text.utf8.contains(UInt8(ascii: "#")) else { throw .malformed("a fragment in the target") }
    if text.utf8.first == UInt8(ascii: "/") {
      path = text
    } else if text == "*", method == .options {
      path = text
    } else {
      (authority, path) = try Self.absolute(text)
    }
  }

  /// The absolute form, which every server has to accept; it overrules `Host` (RFC 9112 §3.2.2).
  private static func absolute(_ text: String) throws(RequestRefusal) -> (String, String) {
    guard let separator = text.firstRange(of: "://") else { throw .malformed("a target without a path") }
    let scheme = text[..<separator.lowerBound].lowercased()
    guard scheme == "http" || scheme == "https" else { throw .malformed("a target that is no http URL") }
    let rest = text[separator.upperBound...]
    let end = rest.firstIndex { $0 == "/" || $0 == "?" } ?? rest.endIndex
    let authority = String(rest[..<end])
    guard isAuthority(authority) else { throw .malformed("the target has no valid host") }
    let path = rest[end...]
    return (authority, path.hasPrefix("/") ? String(path) : "/\(path)")
  }

  /// `host [":" port]` (RFC 9110 §7.2), without user information; a port may be empty (RFC 3986 §3.2.3).
  static func isAuthority(_ text: String) -> Bool {
    var rest = Substring(text)
    if rest.hasPrefix("[") {
      guard let end = rest.firstIndex(of: "]") else { return false }
      let address = rest[..<end].dropFirst()
      guard !address.isEmpty, address.utf8.allSatisfy({ $0.isHexDigit || ":.".utf8.contains($0) }) else { return false }
      rest = rest[rest.index(after: end)...]
    } else {
      let host = rest.prefix { $0 != ":" }
      guard !host.isEmpty, host.utf8.allSatisfy({ $0.isLetterOrDigit || "-._~%!$&'()*+,;=".utf8.contains($0) }) else {
        return false
      }
      rest = rest[host.endIndex...]
    }
    guard !rest.isEmpty else { return true }
    let port = rest.dropFirst()
    guard rest.hasPrefix(":"), port.utf8.allSatisfy({ (48...57).contains($0) }) else { return false }
    return port.isEmpty || (Int(port) ?? .max) <= 65535
  }
}
#endif
