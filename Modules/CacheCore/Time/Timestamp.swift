/// A point in wall time: nanoseconds since 1970-01-01 00:00 UTC, without leap seconds.
///
/// RFC 9111 reasons in dates, so freshness is computed with this type; arithmetic saturates instead of trapping, because
/// lifetimes come from servers.
public struct Timestamp: Hashable, Comparable, Sendable {
  /// Nanoseconds since 1970-01-01 00:00 UTC.
  public var nanoseconds: Int64

  /// A point in time, in nanoseconds since 1970.
  public init(nanoseconds: Int64) { self.nanoseconds = nanoseconds }

  /// A point in time, in whole seconds since 1970; saturates beyond the years 1678 and 2262.
  public init(seconds: Int64) {
    let (product, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
    nanoseconds = overflow ? (seconds < 0 ? .min : .max) : product
  }

  /// Earlier than any other.
  public static let distantPast = Timestamp(nanoseconds: .min)
  /// Later than any other: "never ends".
  public static let distantFuture = Timestamp(nanoseconds: .max)

  /// Whole seconds since 1970, rounded down: the resolution of HTTP dates.
  public var seconds: Int64 {
    let (quotient, remainder) = nanoseconds.quotientAndRemainder(dividingBy: 1_000_000_000)
    return remainder < 0 ? quotient - 1 : quotient
  }

  public static func < (a: Self, b: Self) -> Bool { a.nanoseconds < b.nanoseconds }

  /// The time that lies `duration` later; saturates at ``distantPast`` and ``distantFuture``.
  public static func + (time: Self, duration: Duration) -> Self {
    let (sum, overflow) = time.nanoseconds.addingReportingOverflow(duration.saturatedNanoseconds)
    return Timestamp(nanoseconds: overflow ? (duration < .zero ? .min : .max) : sum)
  }

  /// The time that lies `duration` earlier; saturates.
  public static func - (time: Self, duration: Duration) -> Self {
    let (difference, overflow) = time.nanoseconds.subtractingReportingOverflow(duration.saturatedNanoseconds)
    return Timestamp(nanoseconds: overflow ? (duration < .zero ? .max : .min) : difference)
  }

  /// The time that passed from `b` to `a`, negative when `a` is the earlier one.
  public static func - (a: Self, b: Self) -> Duration {
    let (difference, overflow) = a.nanoseconds.subtractingReportingOverflow(b.nanoseconds)
    return .nanoseconds(overflow ? (a < b ? Int64.min : .max) : difference)
  }
}

extension Timestamp: CustomStringConvertible {
  /// The date and time in UTC (RFC 3339), to the nanosecond: `1994-11-06T08:49:37Z`, `1994-11-06T08:49:37.000000001Z`.
  public var description: String {
    let time = CivilTime(self)
    let date = "\(CivilTime.padded(time.year, 4))-\(CivilTime.padded(time.month, 2))-\(CivilTime.padded(time.day, 2))"
    let fraction = (nanoseconds % 1_000_000_000 + 1_000_000_000) % 1_000_000_000
    return "\(date)T\(time.clock)\(fraction == 0 ? "" : ".\(CivilTime.padded(fraction, 9))")Z"
  }
}

extension Duration {
  /// The duration in nanoseconds, clamped to what 64 bits hold (292 years).
  package var saturatedNanoseconds: Int64 {
    // A duration below 18 seconds needs no division of 128 bits, which a hit in memory notices.
    if let short = UInt64(exactly: attoseconds) { return Int64(short / 1_000_000_000) }
    let (seconds, attoseconds) = components
    let (scaled, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
    guard !overflow else { return seconds < 0 ? .min : .max }
    let (sum, overflowed) = scaled.addingReportingOverflow(attoseconds / 1_000_000_000)
    return overflowed ? (seconds < 0 ? .min : .max) : sum
  }
}
