internal import CacheCore
internal import HTTPTypes

/// What an answer's bytes can be recognised by, so surely that parts of two transfers may be joined (RFC 9110 §13.1.5).
enum RangeValidator: Hashable, Sendable {
  /// A strong entity tag, quotes included.
  case tag(String)
  /// A `Last-Modified` that is as good as a strong tag, verbatim.
  case date(String)

  /// What `If-Range` says.
  var fieldValue: String {
    switch self {
    case .tag(let value), .date(let value): value
    }
  }

  /// The strong validator among the fields; nil: there is none.
  ///
  /// A weak tag is none, and it rules the date out: a date may be sent only where there is no tag at all (RFC 9110 §13.1.5).
  init?(_ fields: HTTPFields, now: Timestamp) {
    if let tag = fields[.eTag] {
      guard let strong = Self.strongTag(tag) else { return nil }
      self = .tag(strong)
    } else {
      guard let value = fields[.lastModified], let modified = HTTPDate(value, receivedAt: now)?.timestamp,
        let sent = fields[.date].flatMap({ HTTPDate($0, receivedAt: now)?.timestamp }), sent - modified >= Self.settled
      else { return nil }
      self = .date(value)
    }
  }

  /// Whether the fields name the same bytes.
  func isConfirmed(by fields: HTTPFields) -> Bool {
    switch self {
    case .tag(let tag): fields[.eTag].flatMap(Self.strongTag) == tag
    case .date(let date): fields[.eTag] == nil && fields[.lastModified] == date
    }
  }

  /// How long before the answer the last change must have been for its date to be strong.
  ///
  /// RFC 9110 §8.8.2.2 wants a second when both dates come from one clock, which nobody can know here, or else enough to make it
  /// sure; a minute is what its predecessors named.
  private static let settled = Duration.seconds(60)

  /// The tag, when it is a strong one in good form (RFC 9110 §8.8.3). One that is repeated is none.
  private static func strongTag(_ value: String) -> String? {
    let text = value[...].utf8.trimmingBlanks()
    guard text.count >= 2, text.first == UInt8(ascii: "\""), text.last == UInt8(ascii: "\""),
      text.dropFirst().dropLast().allSatisfy({ $0 == 0x21 || (0x23...0x7e).contains($0) || $0 >= 0x80 })
    else { return nil }
    return String(Substring(text))
  }
}
