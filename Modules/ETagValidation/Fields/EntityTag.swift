public import HTTPTypes

/// An entity tag: the origin's label for one state of a resource (RFC 9110 §8.8.3).
///
/// Text that is no tag, without quotes or with one inside, is accepted as a weak tag: nothing says that it labels bytes. A lower-case `w/` counts as `W/`.
///
/// ```swift
/// EntityTag("W/\"1\"")?.weaklyMatches(EntityTag("\"1\"")!)  // true
/// ```
public struct EntityTag: Hashable, Sendable {
  /// Whether it labels what the bytes mean rather than the bytes (RFC 9110 §8.8.1).
  public let isWeak: Bool
  /// The bytes between the quotes.
  public let opaque: [UInt8]

  /// A tag of a field's text; nil when it is empty.
  public init?(_ text: String) { self.init(bytes: Array(text.utf8)) }

  /// A tag of a field; nil when its value is empty.
  public init?(_ field: HTTPField) { self.init(bytes: field.bytes) }

  init?(bytes: [UInt8]) {
    let blanks: Set<UInt8> = [0x20, 0x09]
    guard let start = bytes.firstIndex(where: { !blanks.contains($0) }),
      let end = bytes.lastIndex(where: { !blanks.contains($0) })
    else { return nil }
    let text = bytes[start...end]
    let marked = text.count > 2 && text[start] | 0x20 == UInt8(ascii: "w") && text[start + 1] == UInt8(ascii: "/")
    let tag = marked ? text.dropFirst(2) : text
    let quote = UInt8(ascii: "\"")
    if tag.count >= 2, tag.first == quote, tag.last == quote, !tag.dropFirst().dropLast().contains(quote) {
      (isWeak, opaque) = (marked, Array(tag.dropFirst().dropLast()))
    } else {
      (isWeak, opaque) = (true, Array(text))
    }
  }

  /// Both label the same bytes (RFC 9110 §8.8.3.2).
  public func stronglyMatches(_ other: EntityTag) -> Bool { !isWeak && !other.isWeak && opaque == other.opaque }

  /// Both label the same state, weak or not (RFC 9110 §8.8.3.2).
  public func weaklyMatches(_ other: EntityTag) -> Bool { opaque == other.opaque }

}
