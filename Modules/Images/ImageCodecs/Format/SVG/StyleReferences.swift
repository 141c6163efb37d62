internal import CacheCore

/// The references of a style by `url(…)` and `@import` (CSS Syntax Module Level 3 §4.3).
enum StyleReferences {
  /// The placeholder for an escaped character that is not a letter, digit or dash. Such a character is part of a name
  /// or a string, whatever its meaning without the escape.
  static let escaped: UInt8 = 0

  /// Returns the first reference to an embedded document other than a font, or `nil` if there is none. References to files and
  /// hosts are ignored.
  ///
  /// - Parameter inside: Called with the name of each element of the drawing that the style refers to.
  static func embedded(in style: [UInt8], inside: (String) -> Void = { _ in }) -> ArraySlice<UInt8>? {
    let text = style.contains(UInt8(ascii: "\\")) ? withoutEscapes(style) : style
    var next = 0
    var importsAreExternal = false
    while next < text.count {
      switch text[next] {
      case UInt8(ascii: "/") where text[next...].startsWithoutCase("/*"):
        next = endOfComment(text, next + 2)
      case UInt8(ascii: "\""), UInt8(ascii: "'"):
        next = endOfString(text, next) + 1
      case UInt8(ascii: "@") where text[next...].startsWithoutCase("@import"):
        // The rest of the style is checked once, because a comment can hide the end of the rule.
        guard !importsAreExternal else {
          next += 1
          continue
        }
        if text[next...].containsDataURL { return text[next...] }
        importsAreExternal = true
      case UInt8(ascii: "(") where isURL(text[..<next]):
        let target = target(text, next + 1)
        if isDocument(target) { return target }
        let name = target.drop { $0.isBlank }
        if name.first == UInt8(ascii: "#") { SVGWork.spellings(name.dropFirst()).forEach(inside) }
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

  private static func isNamePart(_ byte: UInt8) -> Bool { byte.isNamePart || byte == escaped }

  /// Returns a style without escapes and comments. Punctuation in strings becomes a part of the string.
  static func plain(_ style: some Collection<UInt8>) -> [UInt8] {
    let style = Array(style)
    let text = style.contains(UInt8(ascii: "\\")) ? withoutEscapes(style) : style
    var plain: [UInt8] = []
    plain.reserveCapacity(text.count)
    var next = 0
    while next < text.count {
      switch text[next] {
      case UInt8(ascii: "/") where text[next...].startsWithoutCase("/*"):
        next = min(endOfComment(text, next + 2), text.count)
      case UInt8(ascii: "\""), UInt8(ascii: "'"):
        let end = min(endOfString(text, next) + 1, text.count)
        plain += text[next..<end].map { byte in ":;{}".utf8.contains(byte) ? escaped : byte }
        next = end
      case let byte:
        plain.append(byte)
        next += 1
      }
    }
    return plain
  }

  /// Returns the text in the parentheses, quoted or not.
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

  /// Returns the index of the closing quote or of the end of the line, which also ends a string.
  private static func endOfString(_ text: [UInt8], _ start: Int) -> Int {
    var next = start + 1
    while next < text.count, text[next] != text[start], text[next] != 0x0A, text[next] != 0x0D, text[next] != 0x0C { next += 1 }
    return next
  }

  /// Returns whether a reference is to a part of an embedded document. Data without a fragment is a font, or nothing that the
  /// engines draw.
  private static func isDocument(_ target: ArraySlice<UInt8>) -> Bool {
    target.isDataURL && (target.contains(UInt8(ascii: "#")) || target.contains(escaped))
  }

  /// Resolves escapes: `\75rl` is "url".
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
      let digits = style[next...].prefix(6).prefix { $0.hexValue != nil }
      guard !digits.isEmpty else {
        if next < style.count { text.append(named(UInt32(style[next]))) }
        next += 1
        continue
      }
      text.append(named(UInt32(String(decoding: digits, as: UTF8.self), radix: 16) ?? 0))
      next = digits.endIndex
      // One white space character belongs to the escape, and CR LF counts as one.
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
