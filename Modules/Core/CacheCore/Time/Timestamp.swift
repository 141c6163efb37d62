#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

/// A wall-clock time: nanoseconds since 1970-01-01 00:00 UTC, without leap seconds.
///
/// Freshness is computed with this type, because RFC 9111 is defined in dates. Arithmetic saturates instead of trapping, because
/// servers choose the lifetimes.
public struct Timestamp: Hashable, Comparable, Sendable {
  /// The number of nanoseconds since 1970-01-01 00:00 UTC.
  public var nanoseconds: Int64

  /// Creates a time from nanoseconds since 1970.
  public init(nanoseconds: Int64) { self.nanoseconds = nanoseconds }

  /// Creates a time from seconds since 1970. It saturates outside the years 1678 to 2262.
  public init(seconds: Int64) {
    let (product, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
    nanoseconds = overflow ? (seconds < 0 ? .min : .max) : product
  }

  /// The earliest time.
  public static let distantPast = Timestamp(nanoseconds: .min)
  /// The latest time, which means "never".
  public static let distantFuture = Timestamp(nanoseconds: .max)

  /// The number of whole seconds since 1970, rounded down. HTTP dates have this resolution.
  public var seconds: Int64 {
    let (quotient, remainder) = nanoseconds.quotientAndRemainder(dividingBy: 1_000_000_000)
    return remainder < 0 ? quotient - 1 : quotient
  }

  public static func < (a: Self, b: Self) -> Bool { a.nanoseconds < b.nanoseconds }

  /// Returns the time `duration` later. It saturates at ``distantPast`` and ``distantFuture``.
  public static func + (time: Self, duration: Duration) -> Self {
    let (sum, overflow) = time.nanoseconds.addingReportingOverflow(duration.saturatedNanoseconds)
    return Timestamp(nanoseconds: overflow ? (duration < .zero ? .min : .max) : sum)
  }

  /// Returns the time `duration` earlier. It saturates at ``distantPast`` and ``distantFuture``.
  public static func - (time: Self, duration: Duration) -> Self {
    let (difference, overflow) = time.nanoseconds.subtractingReportingOverflow(duration.saturatedNanoseconds)
    return Timestamp(nanoseconds: overflow ? (duration < .zero ? .max : .min) : difference)
  }

  /// Returns the time from `b` to `a`, which is negative if `a` is earlier.
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
  /// The duration in nanoseconds, clamped to 64 bits (292 years).
  package var saturatedNanoseconds: Int64 {
    // Durations below 18 seconds avoid a 128-bit division, whose cost is measurable in a memory hit.
    if let short = UInt64(exactly: attoseconds) { return Int64(short / 1_000_000_000) }
    return Int64(clamping: attoseconds / 1_000_000_000)
  }
}
