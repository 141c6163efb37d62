#if canImport(FoundationEssentials)
package import FoundationEssentials
#else
package import Foundation
#endif

extension ResourceID {
  /// Returns the text of a URL if it is already the effective URI, as is usually the case. It makes no new text.
  ///
  /// The scheme must be `http` or `https`. The host must consist of lowercase letters, digits, dots and hyphens. The port must
  /// not be the scheme's default. There must be a path, with only bytes that need no encoding. If the result is `nil`, use
  /// ``uri(of:)`` with the URL's request.
  package static func plainURI(of url: URL) -> String? {
    var text = url.absoluteString
    return text.withUTF8(isPlainURI) ? text : nil
  }

  private static func isPlainURI(_ text: UnsafeBufferPointer<UInt8>) -> Bool {
    guard text.count > 8, text[0] == UInt8(ascii: "h"), text[1] == UInt8(ascii: "t"), text[2] == UInt8(ascii: "t"),
      text[3] == UInt8(ascii: "p")
    else { return false }
    let isSecure = text[4] == UInt8(ascii: "s")
    let host = isSecure ? 8 : 7
    guard text[host - 3] == UInt8(ascii: ":"), text[host - 2] == UInt8(ascii: "/"), text[host - 1] == UInt8(ascii: "/") else {
      return false
    }
    var place = host
    while place < text.count, isPlainInHost(text[place]) { place += 1 }
    guard place > host, place < text.count else { return false }
    if text[place] == UInt8(ascii: ":") {
      guard let end = endOfPort(text, from: place + 1, standard: isSecure ? 443 : 80) else { return false }
      place = end
    }
    guard place < text.count, text[place] == UInt8(ascii: "/") else { return false }
    while place < text.count, isPlainInPath(text[place]) { place += 1 }
    return place == text.count
  }

  private static func endOfPort(_ text: UnsafeBufferPointer<UInt8>, from start: Int, standard: Int) -> Int? {
    var (place, port) = (start, 0)
    while place < text.count, (48...57).contains(text[place]), port <= 65_535 {
      port = port * 10 + Int(text[place] - 48)
      place += 1
    }
    // A port in normal form has no leading zero.
    guard (1...65_535).contains(port), port != standard, text[start] != UInt8(ascii: "0") else { return nil }
    return place
  }

  private static func isPlainInHost(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "-"): true
    default: false
    }
  }

  private static func isPlainInPath(_ byte: UInt8) -> Bool {
    switch byte {
    // The ranges include the slash, the colon, the semicolon, the question mark and the at sign.
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "/")...UInt8(ascii: ";"), UInt8(ascii: "?")...UInt8(ascii: "Z"),
      UInt8(ascii: "="), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "~"), UInt8(ascii: "&"),
      UInt8(ascii: "+"), UInt8(ascii: ","), UInt8(ascii: "%"):
      true
    default: false
    }
  }
}
