internal import CacheCore

/// What a text's references (`&name;`, `&#65;`) stand for (XML 1.0 §4).
struct MarkupEntities {
  private static let predefined: [String: UInt8] = [
    "amp": UInt8(ascii: "&"), "lt": UInt8(ascii: "<"), "gt": UInt8(ascii: ">"), "apos": UInt8(ascii: "'"),
    "quot": UInt8(ascii: "\""),
  ]

  private var values: [String: [UInt8]] = [:]
  /// How many bytes they may still unfold to, all together: entities within entities grow without bound.
  private var room = 4 << 20

  /// Takes a declaration. Parsers disagree about which one of two counts, and markup in one would have to be read as such
  /// wherever it is used: both are refused, since no drawing needs them.
  mutating func declare(_ name: ArraySlice<UInt8>, _ literal: ArraySlice<UInt8>) throws(CacheError) {
    let name = String(decoding: name, as: UTF8.self)
    // References to characters are undone where an entity is declared, the others where it is used (§4.4).
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
        .decodingFailed, reason: "SVG: the entity \(name.prefix(40)) is declared twice, or holds markup, which is not read")
    }
    values[name] = value
  }

  /// A text with all that its references stand for, and blanks as they are in an attribute, if it is one's.
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
        room -= value.count + 1
        guard room > 0, depth < 16 else {
          throw CacheError(.imageLimitExceeded, reason: "SVG: its entities unfold to more than 4 MiB, or to themselves")
        }
        try unfold(value[...], isAttribute, depth: depth + 1, &unfolded)
      }
      // Of one that is not declared nothing is left.
    }
  }

  /// One reference at the beginning of a text.
  private struct Reference {
    let name: String
    /// Behind it.
    let end: Int

    init?(_ text: ArraySlice<UInt8>) {
      guard text.first == UInt8(ascii: "&") else { return nil }
      let stops = Array(";&<\"' \n\t\r".utf8)
      let name = text.dropFirst().prefix { !stops.contains($0) }
      guard name.endIndex < text.endIndex, text[name.endIndex] == UInt8(ascii: ";") else { return nil }
      self.name = String(decoding: name, as: UTF8.self)
      end = name.endIndex + 1
    }

    /// In UTF-8, where it is one to a character: `&#x41;`.
    var character: [UInt8]? {
      guard name.first == "#" else { return nil }
      let isHexadecimal = name.dropFirst().first == "x"
      let number = UInt32(name.dropFirst(isHexadecimal ? 2 : 1), radix: isHexadecimal ? 16 : 10)
      return number.flatMap(Unicode.Scalar.init).map { Array(String($0).utf8) } ?? []
    }
  }
}
