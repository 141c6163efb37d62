internal import CacheCore
internal import HTTPTypes

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
