package import HTTPTypes

/// A strong validator of a response. It allows parts of two transfers to be combined (RFC 9110 §13.1.5).
package enum RangeValidator: Hashable, Sendable {
  /// A strong entity tag, including its quotes.
  case tag(String)
  /// A `Last-Modified` date that is a strong validator, verbatim.
  case date(String)

  /// The value of an `If-Range` field.
  package var fieldValue: String {
    switch self {
    case .tag(let value), .date(let value): value
    }
  }

  /// Creates the strong validator of the fields, or `nil` if there is none.
  ///
  /// A weak tag is not one and also rules out the date. A date may be used only without any tag (RFC 9110 §13.1.5). Different
  /// lines of a field are no validator.
  package init?(_ fields: HTTPFields, now: Timestamp) {
    if fields.contains(.eTag) {
      guard let strong = Self.strongTag(of: fields) else { return nil }
      self = .tag(strong)
    } else {
      guard let value = fields.single(.lastModified)?.value, let modified = HTTPDate(value, receivedAt: now)?.timestamp,
        let sent = fields.date(receivedAt: now), sent - modified >= Self.settled
      else { return nil }
      self = .date(value)
    }
  }

  /// Returns whether the fields identify the same bytes.
  package func isConfirmed(by fields: HTTPFields) -> Bool {
    switch self {
    case .tag(let tag): Self.strongTag(of: fields) == tag
    case .date(let date): !fields.contains(.eTag) && fields.single(.lastModified)?.value == date
    }
  }

  /// The minimum age of the last change that makes its date a strong validator.
  ///
  /// RFC 9110 §8.8.2.2 requires one second if both dates have the same clock, or else enough for certainty. The clocks are
  /// unknown here. Older RFCs name one minute.
  private static let settled = Duration.seconds(60)

  /// Returns the tag if it is a valid strong tag (RFC 9110 §8.8.3).
  private static func strongTag(of fields: HTTPFields) -> String? {
    guard let line = fields.single(.eTag) else { return nil }
    let text = line.value[...].utf8.trimmingBlanks()
    guard text.count >= 2, text.first == UInt8(ascii: "\""), text.last == UInt8(ascii: "\""),
      text.dropFirst().dropLast().allSatisfy({ $0 == 0x21 || (0x23...0x7e).contains($0) || $0 >= 0x80 })
    else { return nil }
    return String(Substring(text))
  }
}
