internal import CacheCore
internal import HTTPTypes

/// When a server wants to be asked again (RFC 9110 §10.2.3), as a pure reading of its fields.
enum RetryAfter {
  /// The time to wait, from now on; nil: the server does not say, or says it unreadably. Numbers too large for a `Duration`
  /// saturate.
  static func delay(in fields: HTTPFields, now: Timestamp) -> Duration? {
    guard let value = fields[.retryAfter] else { return nil }
    let text = value[...].utf8.trimmingBlanks()
    guard !text.isEmpty else { return nil }
    if text.allSatisfy({ (48...57).contains($0) }) {
      // More digits than 64 bits hold is longer than anybody waits.
      return .seconds(min(Int64(Substring(text)) ?? .max, Int64.max / 1_000_000_000))
    }
    guard let date = HTTPDate(value, receivedAt: now) else { return nil }
    // Against the server's own clock where it tells it: ours may be set wrong.
    let sent = fields[.date].flatMap { HTTPDate($0, receivedAt: now)?.timestamp } ?? now
    return max(date.timestamp - sent, .zero)
  }
}
