internal import HTTPTypes

extension EntityTag {
  /// The tag of an answer, that of the first `ETag` line; nil when that is not asked with, since then it confirms nothing either.
  static func asked(of fields: HTTPFields) -> EntityTag? {
    fields.first(.eTag).flatMap { field in isAsked(with: field) ? EntityTag(field) : nil }
  }

  /// Whether an answer's `ETag` may go back to the origin as `If-None-Match`.
  ///
  /// What begins with `*` would be read as "any representation", and text with a comma as a list of tags, with `*` or another
  /// representation's tag among them: both would confirm what is stored for ever. One well-formed tag is safe whatever it
  /// contains; of what is malformed, text without a comma is one value to the origin as well, which knows best what it means.
  static func isAsked(with field: HTTPField) -> Bool {
    field.withUnsafeBytesOfValue { bytes in
      let text = bytes.drop(while: isBlank)
      guard let first = text.first, first != UInt8(ascii: "*") else { return false }
      return !text.contains(UInt8(ascii: ",")) || isWellFormed(text)
    }
  }

  /// Whether an answer's `ETag` may go back as one of several.
  static func isListed(_ field: HTTPField) -> Bool { field.withUnsafeBytesOfValue { isWellFormed($0[...]) } }

  /// The tag of an answer where it labels bytes (RFC 9110 §8.8.1); nil where it is weak, or none by the grammar.
  static func strong(of fields: HTTPFields) -> EntityTag? {
    guard let field = fields.first(.eTag), isListed(field), let tag = EntityTag(field), !tag.isWeak else { return nil }
    return tag
  }

  /// `entity-tag` to the letter (RFC 9110 §8.8.3): without blanks and control characters, and with a capital `W`.
  private static func isWellFormed(_ text: Slice<UnsafeBufferPointer<UInt8>>) -> Bool {
    let quote = UInt8(ascii: "\"")
    let isMarked = text.count > 1 && text[text.startIndex] == UInt8(ascii: "W") && text[text.startIndex + 1] == UInt8(ascii: "/")
    let tag = isMarked ? text.dropFirst(2) : text
    guard tag.count >= 2, tag.first == quote, tag.last == quote else { return false }
    return tag.dropFirst().dropLast().allSatisfy { $0 > 0x20 && $0 != quote && $0 != 0x7F }
  }
}
