internal import CacheCore
package import HTTPTypes

/// An entity tag, the origin's label for a state of a resource (RFC 9110 §8.8.3).
///
/// Invalid text, such as text without quotes or with a quote inside, is read as a weak tag, because it does not claim to identify
/// exact bytes. A lowercase `w/` is read as `W/`.
///
/// ```swift
/// EntityTag("W/\"1\"")?.weaklyMatches(EntityTag("\"1\"")!)  // true
/// ```
package struct EntityTag: Hashable, Sendable {
  /// Whether the tag identifies the meaning of the bytes instead of the bytes (RFC 9110 §8.8.1).
  package let isWeak: Bool
  /// The bytes between the quotes.
  package let opaque: [UInt8]

  /// Creates a tag from the text of a field, or returns `nil` if the text is empty.
  package init?(_ text: String) { self.init(bytes: Array(text.utf8)) }

  /// Creates a tag from a field, or returns `nil` if its value is empty.
  package init?(_ field: HTTPField) {
    guard let tag = field.withUnsafeBytesOfValue({ EntityTag($0) }) else { return nil }
    self = tag
  }

  init?(bytes: [UInt8]) {
    guard let tag = bytes.withUnsafeBufferPointer({ EntityTag($0) }) else { return nil }
    self = tag
  }

  init?(_ bytes: UnsafeBufferPointer<UInt8>) {
    let bytes = bytes.trimmingBlanks()
    guard !bytes.isEmpty else { return nil }
    let isMarked = bytes.count > 2 && bytes[0] | 0x20 == UInt8(ascii: "w") && bytes[1] == UInt8(ascii: "/")
    let (tag, quote) = (bytes[(isMarked ? 2 : 0)...], UInt8(ascii: "\""))
    if tag.count >= 2, tag.first == quote, tag.last == quote, !tag.dropFirst().dropLast().contains(quote) {
      (isWeak, opaque) = (isMarked, Array(tag.dropFirst().dropLast()))
    } else {
      (isWeak, opaque) = (true, Array(bytes))
    }
  }

  /// Returns whether the byte is a space or a tab (RFC 9110 §5.6.3).
  static func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }

  /// Returns whether both tags identify the same bytes (RFC 9110 §8.8.3.2).
  package func stronglyMatches(_ other: EntityTag) -> Bool { !isWeak && !other.isWeak && opaque == other.opaque }

  /// Returns whether both tags identify the same state, weak or not (RFC 9110 §8.8.3.2).
  package func weaklyMatches(_ other: EntityTag) -> Bool { opaque == other.opaque }
}

extension EntityTag: CustomStringConvertible {
  /// The tag as it appears in a field, such as `W/"1"`.
  package var description: String { "\(isWeak ? "W/" : "")\"\(String(decoding: opaque, as: UTF8.self))\"" }
}

extension EntityTag {
  /// Returns the tag of a response's first `ETag` line, or `nil` if it must not be sent in a request. Such a tag confirms
  /// nothing.
  static func validator(of fields: HTTPFields) -> EntityTag? {
    fields.first(.eTag).flatMap { field in isValidator(field) ? EntityTag(field) : nil }
  }

  /// Returns whether a response's `ETag` may be sent to the origin as `If-None-Match`.
  ///
  /// Text that begins with `*` would be read as "any representation". Text with a comma would be read as a list, which may
  /// include `*` or the tag of another representation. Both would confirm the stored response forever.
  ///
  /// A valid tag is safe, whatever it contains. Invalid text without a comma is a single value for the origin too, which knows
  /// its meaning.
  static func isValidator(_ field: HTTPField) -> Bool {
    field.withUnsafeBytesOfValue { bytes in
      let text = bytes.drop(while: isBlank)
      guard let first = text.first, first != UInt8(ascii: "*") else { return false }
      return !text.contains(UInt8(ascii: ",")) || isWellFormed(text)
    }
  }

  /// Returns whether a response's `ETag` may be sent as one of several.
  static func isListed(_ field: HTTPField) -> Bool { field.withUnsafeBytesOfValue { isWellFormed($0[...]) } }

  /// Returns the tag of a response if it is a strong validator (RFC 9110 §8.8.1), or `nil` if it is weak or invalid, or if
  /// several lines differ.
  static func strong(of fields: HTTPFields) -> EntityTag? {
    guard let field = fields.single(.eTag), isListed(field), let tag = EntityTag(field), !tag.isWeak else { return nil }
    return tag
  }

  /// Returns whether the text is exactly an `entity-tag` (RFC 9110 §8.8.3): without blanks and control characters, and with a
  /// capital `W`.
  private static func isWellFormed(_ text: Slice<UnsafeBufferPointer<UInt8>>) -> Bool {
    let quote = UInt8(ascii: "\"")
    let isMarked = text.count > 1 && text[text.startIndex] == UInt8(ascii: "W") && text[text.startIndex + 1] == UInt8(ascii: "/")
    let tag = isMarked ? text.dropFirst(2) : text
    guard tag.count >= 2, tag.first == quote, tag.last == quote else { return false }
    return tag.dropFirst().dropLast().allSatisfy { $0 > 0x20 && $0 != quote && $0 != 0x7F }
  }
}

/// The members of an `If-None-Match` field (RFC 9110 §13.1.2): `*`, or a list of tags.
///
/// A comma inside a tag is not a separator. A member that is not a valid tag is read as a weak tag up to the next comma, as
/// ``EntityTag`` reads it.
package struct EntityTagList {
  private(set) var tags: [EntityTag] = []
  /// Whether one member is `*`, which matches any representation.
  private(set) var matchesAny = false
  /// Whether every member is a valid tag. If so, others can be appended without changing the meaning of the list.
  private(set) var isWellFormed = true

  /// Creates a list from all lines of a field, or an empty list if the field is absent.
  package init(_ name: HTTPField.Name, of fields: HTTPFields) {
    for position in fields.positions(of: name) { fields[position].withUnsafeBytesOfValue { read($0[...]) } }
  }

  /// Returns whether one of the tags matches `tag` by weak comparison (§13.1.2).
  package func names(_ tag: EntityTag?) -> Bool {
    guard let tag else { return matchesAny }
    return matchesAny || tags.contains { $0.weaklyMatches(tag) }
  }

  private mutating func read(_ line: Slice<UnsafeBufferPointer<UInt8>>) {
    var rest = line
    while true {
      rest = rest.drop { EntityTag.isBlank($0) || $0 == UInt8(ascii: ",") }
      guard !rest.isEmpty else { return }
      let end = Self.endOfTag(rest)
      let member = rest[..<(end ?? rest.firstIndex(of: UInt8(ascii: ",")) ?? rest.endIndex)]
      rest = rest[member.endIndex...]
      if end == nil { isWellFormed = false }
      if let tag = EntityTag(UnsafeBufferPointer(rebasing: member)) {
        if tag.opaque == [UInt8(ascii: "*")], end == nil { matchesAny = true } else { tags.append(tag) }
      }
    }
  }

  /// Returns the end of the tag at the start of `text`, or `nil` if there is no valid tag followed by a comma or the end.
  private static func endOfTag(_ text: Slice<UnsafeBufferPointer<UInt8>>) -> Int? {
    let quote = UInt8(ascii: "\"")
    let isMarked = text.count > 1 && text[text.startIndex] == UInt8(ascii: "W") && text[text.startIndex + 1] == UInt8(ascii: "/")
    let tag = isMarked ? text.dropFirst(2) : text
    guard tag.first == quote, let close = tag.dropFirst().firstIndex(of: quote) else { return nil }
    let after = text[(close + 1)...].drop(while: EntityTag.isBlank)
    return after.isEmpty || after.first == UInt8(ascii: ",") ? close + 1 : nil
  }
}
