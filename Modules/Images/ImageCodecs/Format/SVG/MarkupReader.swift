internal import CacheCore

/// A forward-only reader of a markup text in any ASCII-compatible encoding.
struct MarkupReader {
  let bytes: [UInt8]
  private(set) var next = 0

  init(_ bytes: [UInt8]) { self.bytes = bytes }

  var current: UInt8? { next < bytes.count ? bytes[next] : nil }

  func isAt(_ text: StaticString) -> Bool {
    text.utf8CodeUnitCount <= bytes.count - next
      && text.withUTF8Buffer { text in text.indices.allSatisfy { bytes[next + $0] == text[$0] } }
  }

  mutating func skip(_ count: Int = 1) { next = min(next + count, bytes.count) }

  mutating func skipBlanks() { while let byte = current, byte.isBlank { next += 1 } }

  /// Returns the bytes before `byte` and stops at it. Without such a byte, it returns the rest.
  mutating func take(upTo byte: UInt8) -> ArraySlice<UInt8> {
    let start = next
    while let current, current != byte { next += 1 }
    return bytes[start..<next]
  }

  /// Returns the bytes before `text` and stops after it. Without such a text, it returns the rest.
  mutating func take(past text: StaticString) -> ArraySlice<UInt8> {
    let start = next
    while next < bytes.count {
      if isAt(text) {
        defer { skip(text.utf8CodeUnitCount) }
        return bytes[start..<next]
      }
      next += 1
    }
    return bytes[start...]
  }

  /// Skips the comment that starts here. Returns `false` if there is none.
  mutating func skipComment() -> Bool {
    guard isAt("<!--") else { return false }
    skip(4)
    _ = take(past: "-->")
    return true
  }

  /// Returns the bytes up to the next punctuation of markup, possibly none.
  mutating func word() -> ArraySlice<UInt8> {
    let start = next
    while let byte = current, !byte.isBlank, !byte.isQuote, !Self.isEnd(byte) { next += 1 }
    return bytes[start..<next]
  }

  private static func isEnd(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "="), UInt8(ascii: ">"), UInt8(ascii: "/"), UInt8(ascii: "["), UInt8(ascii: "]"): true
    default: false
    }
  }

  /// Returns the text between quotes, or `nil` if the next byte is not a quote.
  mutating func quoted() -> ArraySlice<UInt8>? {
    guard let quote = current, quote.isQuote else { return nil }
    next += 1
    let value = take(upTo: quote)
    skip()
    return value
  }
}

extension UInt8 {
  var isBlank: Bool { self == 0x20 || (0x09...0x0D).contains(self) }
  var isQuote: Bool { self == UInt8(ascii: "\"") || self == UInt8(ascii: "'") }
  var isDigit: Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(self) }
  /// Whether the byte is a letter, a digit, a dash, an underscore, or a part of a character beyond ASCII.
  var isNamePart: Bool {
    (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(lowercased) || isDigit || self == UInt8(ascii: "-")
      || self == UInt8(ascii: "_") || self >= 0x80
  }
}

extension Collection<UInt8> {
  /// Returns whether the bytes begin with `text`, ignoring the case of ASCII letters. `text` is in lower case.
  func startsWithoutCase(_ text: StaticString) -> Bool {
    let start = prefix(text.utf8CodeUnitCount)
    return text.withUTF8Buffer { start.count == $0.count && zip(start, $0).allSatisfy { $0.lowercased == $1 } }
  }

  /// Whether the bytes are a `data:` URL, or may be one because a character has an escape. URL parsers ignore control characters
  /// and white space.
  var isDataURL: Bool {
    contains(StyleReferences.escaped) || Array(lazy.filter { $0 > 0x20 }.prefix(5)).startsWithoutCase("data:")
  }

  /// Whether any part of the bytes is a `data:` URL, or may be one.
  var containsDataURL: Bool {
    let bytes = filter { $0 > 0x20 }
    return contains(StyleReferences.escaped) || bytes.indices.contains { bytes[$0...].startsWithoutCase("data:") }
  }

  /// The first hundred bytes as text, for error reasons.
  var excerpt: String { String(decoding: prefix(100), as: UTF8.self) }
}
