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
    var text = authority
    let rest = text.withUTF8 { bytes in
      bytes.lastIndex(of: UInt8(ascii: "@")).map { String(decoding: bytes[($0 + 1)...], as: UTF8.self) }
    }
    return rest ?? authority
  }

  private static func port(_ text: Substring) -> Int? {
    guard !text.isEmpty, text.utf8.allSatisfy({ (48...57).contains($0) }), let port = Int(text) else { return nil }
    return (1...65535).contains(port) ? port : nil
  }
}
