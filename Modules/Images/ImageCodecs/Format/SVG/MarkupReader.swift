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

/// The expansion of entity and character references such as `&name;` and `&#65;` (XML 1.0 §4).
struct MarkupEntities {
  private static let predefined: [String: UInt8] = [
    "amp": UInt8(ascii: "&"), "lt": UInt8(ascii: "<"), "gt": UInt8(ascii: ">"), "apos": UInt8(ascii: "'"),
    "quot": UInt8(ascii: "\""),
  ]

  private var values: [String: [UInt8]] = [:]
  /// The number of bytes that all references together may still expand to. Nested entities grow exponentially.
  private var remainingSize = 4 << 20

  /// Adds an entity declaration. Duplicate declarations are refused, because parsers disagree about which one applies.
  /// Markup in an entity is refused, because it would have to be parsed at each use. No drawing needs either.
  mutating func declare(_ name: ArraySlice<UInt8>, _ literal: ArraySlice<UInt8>) throws(CacheError) {
    let name = String(decoding: name, as: UTF8.self)
    // Character references are expanded at the declaration, entity references at the use (§4.4).
    var value: [UInt8] = []
    var index = literal.startIndex
    while index < literal.endIndex {
      if let reference = Reference(literal[index...]), let character = reference.character {
        value += character
        index = reference.end
      } else {
        value.append(literal[index])
        index += 1
      }
    }
    guard values[name] == nil, !value.contains(UInt8(ascii: "<")) else {
      throw CacheError(
        .decodingFailed, reason: "SVG: the entity \(name.prefix(40)) is declared twice or contains markup")
    }
    values[name] = value
  }

  /// Returns a text with all references expanded. In an attribute, white space is normalized.
  mutating func unfolding(_ text: ArraySlice<UInt8>, isAttribute: Bool) throws(CacheError) -> [UInt8] {
    var unfolded: [UInt8] = []
    unfolded.reserveCapacity(text.count)
    try unfold(text, isAttribute, depth: 0, &unfolded)
    return unfolded
  }

  private mutating func unfold(
    _ text: ArraySlice<UInt8>, _ isAttribute: Bool, depth: Int, _ unfolded: inout [UInt8]
  ) throws(CacheError) {
    var index = text.startIndex
    while index < text.endIndex {
      let byte = text[index]
      guard byte == UInt8(ascii: "&"), let reference = Reference(text[index...]) else {
        unfolded.append(isAttribute && byte.isBlank ? 0x20 : byte)
        index += 1
        continue
      }
      index = reference.end
      if let character = reference.character {
        unfolded += character
      } else if let character = Self.predefined[reference.name] {
        unfolded.append(character)
      } else if let value = values[reference.name] {
        remainingSize -= value.count + 1
        guard remainingSize > 0, depth < 16 else {
          throw CacheError(.imageLimitExceeded, reason: "SVG: its entities expand to more than 4 MiB or are recursive")
        }
        try unfold(value[...], isAttribute, depth: depth + 1, &unfolded)
      }
      // An undeclared entity expands to nothing.
    }
  }

  /// A reference at the beginning of a text.
  private struct Reference {
    let name: String
    /// The index after the reference.
    let end: Int

    init?(_ text: ArraySlice<UInt8>) {
      guard text.first == UInt8(ascii: "&") else { return nil }
      let stops = Array(";&<\"' \n\t\r".utf8)
      let name = text.dropFirst().prefix { !stops.contains($0) }
      guard name.endIndex < text.endIndex, text[name.endIndex] == UInt8(ascii: ";") else { return nil }
      self.name = String(decoding: name, as: UTF8.self)
      end = name.endIndex + 1
    }

    /// The referenced character in UTF-8, if this is a character reference such as `&#x41;`.
    var character: [UInt8]? {
      guard name.first == "#" else { return nil }
      let isHexadecimal = name.dropFirst().first == "x"
      let number = UInt32(name.dropFirst(isHexadecimal ? 2 : 1), radix: isHexadecimal ? 16 : 10)
      return number.flatMap(Unicode.Scalar.init).map { Array(String($0).utf8) } ?? []
    }
  }
}
