internal import CacheCore
internal import HTTPTypes

/// The parser of `Retry-After` (RFC 9110 §10.2.3).
enum RetryAfter {
  /// Returns the delay from now, or `nil` if the field is missing or invalid. Of several lines, the longest delay applies.
  /// Numbers too large for a `Duration` saturate.
  static func delay(in fields: HTTPFields, now: Timestamp) -> Duration? {
    guard fields.contains(.retryAfter) else { return nil }
    return fields[values: .retryAfter].compactMap { delay($0, fields, now) }.max()
  }

  private static func delay(_ value: String, _ fields: HTTPFields, _ now: Timestamp) -> Duration? {
    let text = value[...].utf8.trimmingBlanks()
    guard !text.isEmpty else { return nil }
    if text.allSatisfy({ (48...57).contains($0) }) {
      // A number of more than 64 bits is longer than any wait.
      return .seconds(min(Int64(Substring(text)) ?? .max, Int64.max / 1_000_000_000))
    }
    guard let date = HTTPDate(value, receivedAt: now) else { return nil }
    // Measured by the server's clock if it sends `Date`, because ours may be wrong.
    return max(date.timestamp - (fields.date(receivedAt: now) ?? now), .zero)
  }
}
