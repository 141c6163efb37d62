/// A writer of the items of structured fields (RFC 8941 §4.1).
enum StructuredText {
  /// Returns the text as a token if it is one, or else as a string.
  static func tokenOrString(_ text: String) -> String { isToken(text) ? text : string(text) }

  /// Returns the text as a quoted string. Control characters and non-ASCII characters are percent-encoded by their bytes.
  static func string(_ text: String) -> String {
    var quoted = "\""
    for byte in text.utf8 {
      switch byte {
      case UInt8(ascii: "\""), UInt8(ascii: "\\"): quoted += "\\\(Character(Unicode.Scalar(byte)))"
      case 0x20...0x7E: quoted.unicodeScalars.append(Unicode.Scalar(byte))
      default: quoted += "%\(String(byte >> 4, radix: 16, uppercase: true))\(String(byte & 15, radix: 16, uppercase: true))"
      }
    }
    return quoted + "\""
  }

  /// Returns the number, clamped to the fifteen digits of a structured integer.
  static func integer(_ number: Int64) -> Int64 { min(max(number, -999_999_999_999_999), 999_999_999_999_999) }

  private static func isToken(_ text: String) -> Bool {
    guard let first = text.utf8.first, isLetter(first) || first == UInt8(ascii: "*") else { return false }
    return text.utf8.allSatisfy { isLetter($0) || isDigitOrMark($0) }
  }

  private static func isLetter(_ byte: UInt8) -> Bool {
    (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20)
  }

  /// Returns whether the byte is a digit, `:`, `/`, or a `tchar` that is not a letter.
  private static func isDigitOrMark(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "/")...UInt8(ascii: ":"), 0x21, 0x23...0x27, 0x2A, 0x2B, 0x2D, 0x2E, 0x5E, 0x5F, 0x60, 0x7C, 0x7E: true
    default: false
    }
  }
}
