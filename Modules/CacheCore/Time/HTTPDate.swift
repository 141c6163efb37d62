/// A date as HTTP writes it (RFC 9110 §5.6.7), to the second.
///
/// Read are the preferred form (`Sun, 06 Nov 1994 08:49:37 GMT`), that of RFC 850 (`Sunday, 06-Nov-94 08:49:37 GMT`) and C's
/// `asctime` (`Sun Nov 6 08:49:37 1994`). Lenient in what RFC 9111 §4.2 allows and no further: letters in any case, `UTC` for
/// `GMT`, blanks around it, a day of the week that does not belong to the date. Everything else, another time zone above all, is
/// no date.
///
/// ```swift
/// HTTPDate("Sun, 06 Nov 1994 08:49:37 GMT", receivedAt: now)?.timestamp.seconds  // 784111777
/// ```
public struct HTTPDate: Hashable, Comparable, Sendable {
  /// The point in time; dates beyond the year 2262 saturate.
  public let timestamp: Timestamp

  /// The second in which `timestamp` lies.
  public init(_ timestamp: Timestamp) { self.timestamp = Timestamp(seconds: timestamp.seconds) }

  /// The date that `text` states, or nil when it states none.
  ///
  /// - Parameters:
  ///   - text: a field's value, in any of the three forms of RFC 9110 §5.6.7.
  ///   - now: when it came in; settles the century of a two-digit year: never more than 50 years after `now` (RFC 9110 §5.6.7).
  public init?(_ text: String, receivedAt now: Timestamp) {
    guard let time = HTTPDateReader.read(text, now: now) else { return nil }
    timestamp = time.timestamp
  }

  public static func < (a: Self, b: Self) -> Bool { a.timestamp < b.timestamp }
}

extension HTTPDate: CustomStringConvertible {
  /// The preferred form; dates outside the years 0 to 9999, which it can't state, do not arise from a ``Timestamp``.
  public var description: String {
    let time = CivilTime(timestamp)
    let day = HTTPDateReader.weekdays[Int(time.weekday)].prefix(3)
    let month = HTTPDateReader.months[Int(time.month) - 1]
    return "\(day), \(CivilTime.padded(time.day, 2)) \(month) \(CivilTime.padded(time.year, 4)) \(time.clock) GMT"
  }
}
