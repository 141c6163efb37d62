internal import CacheCore

/// The decisions of a ``RateLimit``, without waiting.
///
/// Kept as the moment when the bucket will be full again (the generic cell rate algorithm of ITU-T I.371): no tokens to count,
/// and no fractions to lose.
struct TokenBucket {
  private let interval: Duration
  private let depth: Duration
  private var fullAt: Duration?

  init(_ limit: RateLimit) {
    interval = limit.interval
    depth = limit.interval * limit.burst
  }

  /// How long until there is a token; zero: there is one.
  func delay(at now: Duration) -> Duration {
    guard let fullAt else { return .zero }
    return max(.zero, fullAt + interval - depth - now)
  }

  /// Takes a token, if there is one.
  mutating func take(at now: Duration) -> Bool {
    guard delay(at: now) == .zero else { return false }
    fullAt = max(fullAt ?? now, now) + interval
    return true
  }
}
