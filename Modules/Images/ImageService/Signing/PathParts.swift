#if Service
internal import CacheCore

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// The parts of the path of an image: `PREFIX/SIGNATURE/OPERATIONS/SOURCE`. The signature is not checked here.
struct PathParts {
  /// The signature, which has 32 bytes.
  let signature: Data
  /// The text that is signed: the operations and the source, percent-encoded.
  let signed: Substring

  /// Returns `nil` if the path is not below the prefix, or if it has no signature.
  init?(_ path: String, under prefix: String) {
    guard path.hasPrefix(prefix), path.dropFirst(prefix.count).hasPrefix("/") else { return nil }
    let rest = path.dropFirst(prefix.count + 1)
    guard let slash = rest.firstIndex(of: "/"), let signature = Base64URL.signature(rest[..<slash]) else { return nil }
    self.signature = signature
    signed = rest[rest.index(after: slash)...]
  }

  /// Returns the signed text of operations and a source.
  static func signed(_ operations: String, _ source: String) -> String {
    "\(operations.percentEncoded(leaving: "=,:"))/\(source.percentEncoded(leaving: ""))"
  }

  /// The operations and the source.
  ///
  /// - Throws: `CacheError.Code.invalidURL` if there is no source, or if the percent-encoding is invalid.
  var decoded: (operations: String, source: String) {
    get throws(CacheError) {
      guard let slash = signed.firstIndex(of: "/"), let operations = HostName.percentDecoded(signed[..<slash]),
        let source = HostName.percentDecoded(signed[signed.index(after: slash)...])
      else { throw CacheError(.invalidURL, reason: "the path has no source, or an invalid percent-encoding") }
      return (operations, source)
    }
  }
}

extension String {
  /// Returns the text with all bytes in percent-encoding, except the unreserved characters (RFC 3986 §2.3) and those of `extra`.
  func percentEncoded(leaving extra: String) -> String {
    var text = ""
    for byte in utf8 {
      let character = Character(UnicodeScalar(byte))
      if byte < 128, character.isLetter || character.isNumber || "-._~".contains(character) || extra.contains(character) {
        text.append(character)
      } else {
        text += String(decoding: byte.percentEncoded, as: UTF8.self)
      }
    }
    return text
  }
}

/// The text form of a signature.
enum Base64URL {
  static func text(_ bytes: Data) -> String {
    bytes.base64EncodedString().replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
  }

  /// Returns the 32 bytes of a signature, or `nil` if the text is not exactly the text of 32 bytes. Otherwise several texts, and
  /// so several URLs, would have the same bytes.
  static func signature(_ text: Substring) -> Data? {
    guard text.utf8.count == 43 else { return nil }
    var bytes = Data(capacity: 32)
    var (bits, count) = (UInt32(0), 0)
    for character in text.utf8 {
      guard let value = value(of: character) else { return nil }
      (bits, count) = (bits << 6 | value, count + 6)
      if count >= 8 {
        count -= 8
        bytes.append(UInt8(truncatingIfNeeded: bits >> count))
      }
    }
    // Two bits of the last character belong to no byte.
    return bits & 0b11 == 0 ? bytes : nil
  }

  private static func value(of character: UInt8) -> UInt32? {
    switch character {
    case UInt8(ascii: "A")...UInt8(ascii: "Z"): UInt32(character - UInt8(ascii: "A"))
    case UInt8(ascii: "a")...UInt8(ascii: "z"): UInt32(character - UInt8(ascii: "a")) + 26
    case UInt8(ascii: "0")...UInt8(ascii: "9"): UInt32(character - UInt8(ascii: "0")) + 52
    case UInt8(ascii: "-"): 62
    case UInt8(ascii: "_"): 63
    default: nil
    }
  }
}
#endif
