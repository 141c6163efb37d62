package import HTTPTypes

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
