#if canImport(FoundationEssentials)
package import FoundationEssentials
#else
package import Foundation
#endif

extension ResourceID {
  /// The effective URI that a URL names, where the URL's own text is that already, as nearly always: `http` or `https`, a host of
  /// small letters, digits, dots and hyphens, a port that is not the scheme's own, a path, and behind the host nothing but bytes
  /// that every reader leaves as they are. No text is made then.
  ///
  /// Nil says nothing: ``uri(of:)`` decides about the request that is made of the URL.
  package static func plainURI(of url: URL) -> String? {
    var text = url.absoluteString
    return text.withUTF8(isPlainURI) ? text : nil
  }

  private static func isPlainURI(_ text: UnsafeBufferPointer<UInt8>) -> Bool {
    guard text.count > 8, text.starts(with: "http".utf8) else { return false }
    let isSecure = text[4] == UInt8(ascii: "s")
    let host = isSecure ? 8 : 7
    guard text[(isSecure ? 5 : 4)..<host].elementsEqual("://".utf8) else { return false }
    var place = host
    while place < text.count, isPlainInHost(text[place]) { place += 1 }
    guard place > host, place < text.count else { return false }
    if text[place] == UInt8(ascii: ":") {
      guard let end = endOfPort(text, from: place + 1, standard: isSecure ? 443 : 80) else { return false }
      place = end
    }
    guard place < text.count, text[place] == UInt8(ascii: "/") else { return false }
    return text[place...].allSatisfy(isPlainInPath)
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
