#if canImport(FoundationEssentials)
package import FoundationEssentials
#else
package import Foundation
#endif

extension ResourceID {
  /// Returns the effective URI of a URL if that is the text of the URL itself, as it nearly always is. No text is made then.
  ///
  /// The scheme is `http` or `https`. The host consists of small letters, digits, dots and hyphens. The port is not the default
  /// port of the scheme. There is a path, and it has only bytes that need no encoding. `nil` says nothing about the URL:
  /// ``uri(of:)`` decides by the request that is made of it.
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
    // Another number is written without a zero in front.
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
    // Slash, colon, semicolon, equals, question mark and at sign are among them.
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "/")...UInt8(ascii: ";"), UInt8(ascii: "?")...UInt8(ascii: "Z"),
      UInt8(ascii: "="), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "~"), UInt8(ascii: "&"),
      UInt8(ascii: "+"), UInt8(ascii: ","), UInt8(ascii: "%"):
      true
    default: false
    }
  }
}
