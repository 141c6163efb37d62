/// A date in an HTTP field (RFC 9110 §5.6.7), with a resolution of one second.
///
/// The initializer reads the preferred form (`Sun, 06 Nov 1994 08:49:37 GMT`), the form of RFC 850 (`Sunday, 06-Nov-94 08:49:37
/// GMT`) and that of C's `asctime` (`Sun Nov  6 08:49:37 1994`). It is as lenient as RFC 9111 §4.2 permits: it accepts any case,
/// `UTC` for `GMT`, surrounding blanks, and a wrong day of the week. It rejects everything else, in particular other time zones.
///
/// ```swift
/// HTTPDate("Sun, 06 Nov 1994 08:49:37 GMT", receivedAt: now)?.timestamp.seconds  // 784111777
/// ```
public struct HTTPDate: Hashable, Comparable, Sendable {
  /// The point in time. Dates beyond the year 2262 saturate.
  public let timestamp: Timestamp

  /// Creates a date from a point in time, rounded down to a second.
  public init(_ timestamp: Timestamp) { self.timestamp = Timestamp(seconds: timestamp.seconds) }

  /// Creates a date from the text of a field. Returns `nil` if the text is not a date.
  ///
  /// - Parameters:
  ///   - text: The value of a field, in any of the three forms of RFC 9110 §5.6.7.
  ///   - now: The time at which the field arrived. It determines the century of a two-digit year, which is at most 50 years after
  ///     `now` (RFC 9110 §5.6.7).
  public init?(_ text: String, receivedAt now: Timestamp) {
    var text = text
    let time = text.withUTF8 { HTTPDateReader.read($0, now: now, acceptsUTC: true) }
    guard let time else { return nil }
    timestamp = time.timestamp
  }

  /// Creates the date of an `Expires` field. Returns `nil` for a zone other than `GMT`, which is invalid there, so that the
  /// response has expired (RFC 9111 §4.2, §5.3).
  package init?(expiration text: String, receivedAt now: Timestamp) {
    var text = text
    let time = text.withUTF8 { HTTPDateReader.read($0, now: now, acceptsUTC: false) }
    guard let time else { return nil }
    timestamp = time.timestamp
  }

  public static func < (a: Self, b: Self) -> Bool { a.timestamp < b.timestamp }
}

extension HTTPDate: CustomStringConvertible {
  /// The preferred form. A ``Timestamp`` never has a year outside 0 to 9999, which this form cannot represent.
  public var description: String {
    let time = CivilTime(timestamp)
    let day = HTTPDateReader.weekdays[Int(time.weekday)].prefix(3)
    let month = HTTPDateReader.months[Int(time.month) - 1]
    return "\(day), \(CivilTime.padded(time.day, 2)) \(month) \(CivilTime.padded(time.year, 4)) \(time.clock) GMT"
  }
}
