/// Writes the items of structured fields (RFC 8941 §4.1).
enum StructuredText {
  /// A token where the text is one, else a string.
  static func tokenOrString(_ text: String) -> String { isToken(text) ? text : string(text) }

  /// A string; what it can't hold (control characters, anything but ASCII) is percent-encoded by its bytes.
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

  /// An integer, within the fifteen digits that there are.
  static func integer(_ number: Int64) -> Int64 { min(max(number, -999_999_999_999_999), 999_999_999_999_999) }

  private static func isToken(_ text: String) -> Bool {
    guard let first = text.utf8.first, isLetter(first) || first == UInt8(ascii: "*") else { return false }
    return text.utf8.allSatisfy { isLetter($0) || isDigitOrMark($0) }
  }

  private static func isLetter(_ byte: UInt8) -> Bool {
    (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20)
  }

  /// Digits, `:`, `/` and what `tchar` has beside letters.
  private static func isDigitOrMark(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "/")...UInt8(ascii: ":"), 0x21, 0x23...0x27, 0x2A, 0x2B, 0x2D, 0x2E, 0x5E, 0x5F, 0x60, 0x7C, 0x7E: true
    default: false
    }
  }
}
