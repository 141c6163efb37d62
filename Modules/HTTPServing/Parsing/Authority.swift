#if Service
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
