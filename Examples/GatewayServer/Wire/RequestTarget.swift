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
    authority = nil
    for field in fields where field.name.canonicalName == "host" {
      guard authority == nil else { throw .malformed("more than one Host") }
      authority = field.value
    }
    guard isHTTP10 || authority != nil else { throw .malformed("no Host") }
    if let authority, !Self.isAuthority(authority) { throw .malformed("Host is no host") }
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
  ///
  /// By bytes: every request has one, and characters cost many times as much.
  static func isAuthority(_ text: String) -> Bool {
    var text = text
    return text.withUTF8 { bytes in
      let host: Int
      if bytes.first == UInt8(ascii: "[") {
        guard let end = bytes.firstIndex(of: UInt8(ascii: "]")), end > 1,
          bytes[1..<end].allSatisfy({ $0.isHexDigit || $0 == UInt8(ascii: ":") || $0 == UInt8(ascii: ".") })
        else { return false }
        host = end + 1
      } else {
        host = bytes.firstIndex(of: UInt8(ascii: ":")) ?? bytes.count
        guard host > 0, bytes[..<host].allSatisfy(\.isHostByte) else { return false }
      }
      guard host < bytes.count else { return true }
      return bytes[host] == UInt8(ascii: ":") && isPort(bytes[(host + 1)...])
    }
  }

  /// Digits of a number that a port can have, or none at all.
  private static func isPort(_ digits: Slice<UnsafeBufferPointer<UInt8>>) -> Bool {
    var port = 0
    for digit in digits {
      guard (48...57).contains(digit) else { return false }
      port = port * 10 + Int(digit - 48)
      if port > 65_535 { return false }
    }
    return true
  }
}
#endif
