#if Origin
  /// An entity tag (RFC 9110 §8.8.3). A string literal is a strong one: `etag: "v1"` sends `ETag: "v1"`, quotes included.
  public struct OriginETag: Sendable, Hashable, ExpressibleByStringLiteral, CustomStringConvertible {
    /// The text between the quotes.
    public var opaque: String
    /// Whether the tag is sent with `W/` before it.
    public var isWeak: Bool

    /// A tag that vouches for the bytes.
    public static func strong(_ opaque: String) -> Self { Self(opaque: opaque, isWeak: false) }

    /// A tag that vouches for the meaning only; ranges cannot be combined by it.
    public static func weak(_ opaque: String) -> Self { Self(opaque: opaque, isWeak: true) }

    /// A strong tag.
    public init(stringLiteral value: String) { self = .strong(value) }

    init(opaque: String, isWeak: Bool) {
      (self.opaque, self.isWeak) = (opaque, isWeak)
    }

    /// The field value, quotes included.
    public var description: String { isWeak ? "W/\"\(opaque)\"" : "\"\(opaque)\"" }

    /// RFC 9110 §8.8.3.2: what `If-None-Match` compares by.
    func weaklyMatches(_ other: Self) -> Bool { opaque == other.opaque }

    /// RFC 9110 §8.8.3.2: what `If-Range` compares by.
    func stronglyMatches(_ other: Self) -> Bool { !isWeak && self == other }

    /// The tags of an `If-None-Match` or `If-Range` value. A comma may stand between the quotes of a tag, so splitting at commas
    /// would not do. Reading stops at the first thing that is no tag.
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
#endif
