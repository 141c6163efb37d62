internal import CacheCore

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
