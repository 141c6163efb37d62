package import HTTPTypes

extension HTTPFields {
  /// Returns the delay of `Retry-After` (RFC 9110 §10.2.3), or `nil` if the field is missing or invalid. Of several lines, the
  /// longest delay applies. Numbers too large for a `Duration` saturate.
  ///
  /// - Parameter now: The time at which the response was received. It is evaluated only for a date.
  package func retryAfter(receivedAt now: @autoclosure () -> Timestamp) -> Duration? {
    var longest: Duration?
    for position in positions(of: .retryAfter) {
      guard let delay = delay(self[position].value, now) else { continue }
      longest = Swift.max(longest ?? delay, delay)
    }
    return longest
  }

  private func delay(_ value: String, _ now: () -> Timestamp) -> Duration? {
    let text = value[...].utf8.trimmingBlanks()
    guard !text.isEmpty else { return nil }
    if text.allSatisfy({ (48...57).contains($0) }) {
      // A number of more than 64 bits is longer than any wait.
      return .seconds(Swift.min(Int64(Substring(text)) ?? .max, Int64.max / 1_000_000_000))
    }
    let now = now()
    guard let date = HTTPDate(value, receivedAt: now) else { return nil }
    // Measured by the server's clock if it sends `Date`, because ours may be wrong.
    return Swift.max(date.timestamp - (self.date(receivedAt: now) ?? now), .zero)
  }
}
