/// Where a style leads by `url(…)` and `@import` (CSS Syntax Module Level 3 §4.3).
enum StyleReferences {
  /// What stands for a character that was escaped and is no letter, digit or dash: it is part of a name or of a string then,
  /// whatever it is otherwise.
  private static let escaped: UInt8 = 0

  /// The first reference that leads out of a drawing; nil: there is none.
  static func leadingOut(of style: [UInt8]) -> ArraySlice<UInt8>? {
    let text = style.contains(UInt8(ascii: "\\")) ? withoutEscapes(style) : style
    var next = 0
    while next < text.count {
      switch text[next] {
      case UInt8(ascii: "/") where text[next...].startsWithoutCase("/*"):
        next = endOfComment(text, next + 2)
      case UInt8(ascii: "\""), UInt8(ascii: "'"):
        next = endOfString(text, next) + 1
      case UInt8(ascii: "@") where text[next...].startsWithoutCase("@import"):
        return text[next...]
      case UInt8(ascii: "(") where isURL(text[..<next]):
        let target = target(text, next + 1)
        if leadsOut(target) { return target }
        next = target.endIndex
      default:
        next += 1
      }
    }
    return nil
  }

  private static func isURL(_ before: ArraySlice<UInt8>) -> Bool {
    guard before.suffix(3).startsWithoutCase("url") else { return false }
    guard let byte = before.dropLast(3).last else { return true }
    return !isNamePart(byte)
  }

  private static func isNamePart(_ byte: UInt8) -> Bool {
    (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte.lowercased) || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
      || byte == UInt8(ascii: "-") || byte == UInt8(ascii: "_") || byte == escaped || byte >= 0x80
  }

  /// What stands in the parentheses, with quotes or without.
  private static func target(_ text: [UInt8], _ start: Int) -> ArraySlice<UInt8> {
    let rest = text[start...].drop { $0.isBlank }
    if rest.first?.isQuote == true { return text[rest.startIndex + 1..<endOfString(text, rest.startIndex)] }
    return rest.prefix { $0 != UInt8(ascii: ")") }
  }

  private static func endOfComment(_ text: [UInt8], _ start: Int) -> Int {
    var next = start
    while next + 1 < text.count, text[next] != UInt8(ascii: "*") || text[next + 1] != UInt8(ascii: "/") { next += 1 }
    return next + 2
  }

  /// Where the closing quote is, or the end of the line, which ends a string too.
  private static func endOfString(_ text: [UInt8], _ start: Int) -> Int {
    var next = start + 1
    while next < text.count, text[next] != text[start], text[next] != 0x0A, text[next] != 0x0D, text[next] != 0x0C { next += 1 }
    return next
  }

  /// Data leads nowhere where it names no part of itself: it is a font then, or nothing that an engine here draws.
  private static func leadsOut(_ target: ArraySlice<UInt8>) -> Bool {
    let target = target.drop { $0.isBlank }
    guard let first = target.first, first != UInt8(ascii: "#") else { return false }
    return !target.startsWithoutCase("data:") || target.contains(UInt8(ascii: "#")) || target.contains(escaped)
  }

  /// `\75rl` is "url".
  private static func withoutEscapes(_ style: [UInt8]) -> [UInt8] {
    var text: [UInt8] = []
    text.reserveCapacity(style.count)
    var next = 0
    while next < style.count {
      guard style[next] == UInt8(ascii: "\\") else {
        text.append(style[next])
        next += 1
        continue
      }
      next += 1
      let digits = style[next...].prefix(6).prefix { Character(Unicode.Scalar($0)).isHexDigit }
      guard !digits.isEmpty else {
        if next < style.count { text.append(named(UInt32(style[next]))) }
        next += 1
        continue
      }
      text.append(named(UInt32(String(decoding: digits, as: UTF8.self), radix: 16) ?? 0))
      next = digits.endIndex
      // One blank belongs to the number, and a line's end of two characters is one.
      if style[next...].startsWithoutCase("\r\n") {
        next += 2
      } else if next < style.count, style[next].isBlank {
        next += 1
      }
    }
    return text
  }

  private static func named(_ character: UInt32) -> UInt8 {
    guard let byte = UInt8(exactly: character), byte < 0x80, isNamePart(byte) else { return escaped }
    return byte
  }
}
