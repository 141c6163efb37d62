#if Origin
internal import CacheCore

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// An entity tag (RFC 9110 §8.8.3). A string literal creates a strong tag: `etag: "v1"` sends `ETag: "v1"`, including the quotes.
public struct OriginETag: Sendable, Hashable, ExpressibleByStringLiteral, CustomStringConvertible {
  /// The text between the quotes.
  public var opaque: String
  /// Whether the tag is sent with `W/` before it.
  public var isWeak: Bool

  /// Creates a strong tag, which identifies the exact bytes.
  public static func strong(_ opaque: String) -> Self { Self(opaque: opaque, isWeak: false) }

  /// Creates a weak tag, which identifies equivalent content. Ranges cannot be combined by it.
  public static func weak(_ opaque: String) -> Self { Self(opaque: opaque, isWeak: true) }

  /// Creates a strong tag.
  public init(stringLiteral value: String) { self = .strong(value) }

  init(opaque: String, isWeak: Bool) {
    (self.opaque, self.isWeak) = (opaque, isWeak)
  }

  /// The field value, including the quotes.
  public var description: String { isWeak ? "W/\"\(opaque)\"" : "\"\(opaque)\"" }

  /// Compares the tags as `If-None-Match` does (RFC 9110 §8.8.3.2).
  func weaklyMatches(_ other: Self) -> Bool { opaque == other.opaque }

  /// Compares the tags as `If-Range` does (RFC 9110 §8.8.3.2).
  func stronglyMatches(_ other: Self) -> Bool { !isWeak && self == other }

  /// Parses the tags of an `If-None-Match` or `If-Range` value. The value is not split at commas, because a tag may contain one.
  /// Parsing stops at the first invalid tag.
  static func list(_ value: String) -> [Self] {
    var tags: [Self] = []
    var rest = Substring(value)
    while true {
      rest = rest.drop { $0 == " " || $0 == "\t" || $0 == "," }
      let isWeak = rest.hasPrefix("W/")
      if isWeak { rest = rest.dropFirst(2) }
      guard rest.first == "\"" else { return tags }
      rest = rest.dropFirst()
      guard let end = rest.firstIndex(of: "\"") else { return tags }
      tags.append(Self(opaque: String(rest[..<end]), isWeak: isWeak))
      rest = rest[rest.index(after: end)...]
    }
  }
}

extension HTTPDate {
  /// Creates an HTTP date from a Foundation date, rounded down to whole seconds.
  init(_ date: Date) {
    let seconds = date.timeIntervalSince1970.rounded(.down)
    self.init(Timestamp(seconds: Int64(exactly: seconds) ?? (seconds < 0 ? .min : .max)))
  }
}
#endif
