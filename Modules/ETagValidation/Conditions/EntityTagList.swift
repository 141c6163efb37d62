internal import HTTPTypes

/// The members of `If-None-Match` (RFC 9110 §13.1.2): `*`, or a list of tags.
///
/// A comma inside a tag separates nothing. What is no tag by the grammar is read as a weak one, up to the next comma, as
/// ``EntityTag`` reads it.
struct EntityTagList {
  private(set) var tags: [EntityTag] = []
  /// One member is `*`, which stands for any representation.
  private(set) var matchesAny = false
  /// Every member is a tag by the grammar: others can be appended without changing what the list means.
  private(set) var isWellFormed = true

  /// The list of all lines of a field; of no line, an empty list.
  init(_ name: HTTPField.Name, of fields: HTTPFields) {
    guard fields.contains(name) else { return }
    for field in fields where field.name == name { field.withUnsafeBytesOfValue { read($0[...]) } }
  }

  /// Whether one of the tags labels the same state as `tag` (§13.1.2: weak comparison).
  func names(_ tag: EntityTag?) -> Bool {
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

  /// Where the tag that begins here ends, when it is one by the grammar and a comma or the end follows.
  private static func endOfTag(_ text: Slice<UnsafeBufferPointer<UInt8>>) -> Int? {
    let quote = UInt8(ascii: "\"")
    let isMarked = text.count > 1 && text[text.startIndex] == UInt8(ascii: "W") && text[text.startIndex + 1] == UInt8(ascii: "/")
    let tag = isMarked ? text.dropFirst(2) : text
    guard tag.first == quote, let close = tag.dropFirst().firstIndex(of: quote) else { return nil }
    let after = text[(close + 1)...].drop(while: EntityTag.isBlank)
    return after.isEmpty || after.first == UInt8(ascii: ",") ? close + 1 : nil
  }
}
