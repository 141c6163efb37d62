#if Service
extension String {
  /// Returns the text with all bytes in percent-encoding, except the unreserved characters (RFC 3986 §2.3) and those of `extra`.
  func percentEncoded(leaving extra: String) -> String {
    var text = ""
    for byte in utf8 {
      let character = Character(UnicodeScalar(byte))
      if byte < 128, character.isLetter || character.isNumber || "-._~".contains(character) || extra.contains(character) {
        text.append(character)
      } else {
        let digits = String(byte, radix: 16, uppercase: true)
        text += digits.count == 1 ? "%0\(digits)" : "%\(digits)"
      }
    }
    return text
  }
}
#endif
