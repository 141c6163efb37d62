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
    var (start, end) = (0, bytes.count)
    while start < end, Self.isBlank(bytes[start]) { start += 1 }
    while start < end, Self.isBlank(bytes[end - 1]) { end -= 1 }
    guard start < end else { return nil }
    let isMarked = end - start > 2 && bytes[start] | 0x20 == UInt8(ascii: "w") && bytes[start + 1] == UInt8(ascii: "/")
    let tag = (isMarked ? start + 2 : start)..<end
    let quote = UInt8(ascii: "\"")
    if tag.count >= 2, bytes[tag.lowerBound] == quote, bytes[end - 1] == quote,
      !bytes[(tag.lowerBound + 1)..<(end - 1)].contains(quote)
    {
      (isWeak, opaque) = (isMarked, Array(bytes[(tag.lowerBound + 1)..<(end - 1)]))
    } else {
      (isWeak, opaque) = (true, Array(bytes[start..<end]))
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
