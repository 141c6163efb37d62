#if Server
/// The address of a port to open, such as `127.0.0.1:8080` or `[::1]:8080`. Port 0 selects a free port.
public struct HostAndPort: Hashable, Sendable, CustomStringConvertible {
  /// The name or the IP address, without brackets.
  public var host: String
  /// The number of the port, or 0.
  public var port: Int

  /// Creates an address from its parts.
  public init(host: String, port: Int) { (self.host, self.port) = (host, port) }

  /// Creates an address from a text, or returns `nil` if the text is invalid. Without a host, the address means all addresses of
  /// this machine.
  public init?(_ text: String) {
    guard let colon = text.lastIndex(of: ":"), case let digits = text[text.index(after: colon)...],
      digits.utf8.allSatisfy({ (48...57).contains($0) }), let port = Int(digits), port <= 65_535
    else { return nil }
    var host = text[..<colon]
    // Only an IPv6 address, which has colons, is in brackets.
    let isBracketed = host.hasPrefix("[") && host.hasSuffix("]")
    if isBracketed { host = host.dropFirst().dropLast() }
    guard host.contains(":") == isBracketed, !host.contains(where: { $0 == "[" || $0 == "]" }) else { return nil }
    self.host = host.isEmpty ? "::" : String(host)
    self.port = port
  }

  /// Returns the same host with another port.
  public func with(_ port: Int) -> Self { Self(host: host, port: port) }

  /// The address as text, with an IPv6 address in brackets.
  public var description: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }
}

/// The syntax of `host[:port]`.
public enum Authority {
  /// Returns whether a text is `host [":" port]` (RFC 9110 §7.2), without user information. The port may be empty (RFC 3986
  /// §3.2.3).
  ///
  /// Compares bytes, because this function runs for every request and comparing characters costs many times as much.
  public static func isValid(_ text: String) -> Bool {
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

  /// Returns whether the digits are a valid port number, or empty.
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
