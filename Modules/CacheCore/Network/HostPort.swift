/// A host with an optional port, as in an authority (RFC 3986 §3.2).
package enum HostPort {
  /// Returns the parts, or `nil` if the port is invalid or the brackets do not match. An IPv6 address without brackets has no
  /// port.
  package static func split(_ text: String) -> (host: String, port: Int?)? {
    if text.hasPrefix("[") {
      guard let end = text.firstIndex(of: "]") else { return nil }
      let host = String(text[text.index(after: text.startIndex)..<end])
      let rest = text[text.index(after: end)...]
      guard !rest.isEmpty else { return (host, nil) }
      guard rest.hasPrefix(":"), let port = port(rest.dropFirst()) else { return nil }
      return (host, port)
    }
    let colons = text.filter { $0 == ":" }.count
    guard colons == 1, let colon = text.firstIndex(of: ":") else { return (text, nil) }
    guard let port = port(text[text.index(after: colon)...]) else { return nil }
    return (String(text[..<colon]), port)
  }

  /// Returns an authority without the user information before its last `@`.
  ///
  /// It searches bytes because every load calls it, and characters are many times slower.
  package static func withoutUserInformation(_ authority: String) -> String {
    guard authority.utf8.contains(UInt8(ascii: "@")), let at = authority.utf8.lastIndex(of: UInt8(ascii: "@")) else {
      return authority
    }
    return String(authority[authority.utf8.index(after: at)...])
  }

  private static func port(_ text: Substring) -> Int? {
    guard !text.isEmpty, text.utf8.allSatisfy({ (48...57).contains($0) }), let port = Int(text) else { return nil }
    return (1...65535).contains(port) ? port : nil
  }
}
