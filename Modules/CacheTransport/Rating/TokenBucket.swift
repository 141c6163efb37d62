internal import CacheCore

/// The decisions of a ``RateLimit``, without waiting.
///
/// The state is the time at which the bucket will be full (the generic cell rate algorithm of ITU-T I.371). It needs no token
/// count and loses no fractions.
package struct TokenBucket {
  private let interval: Duration
  private let depth: Duration
  private var fullAt: Duration?

  package init(_ limit: RateLimit) {
    interval = limit.interval
    depth = limit.interval * limit.burst
  }

  /// Returns the time until a token is available, or zero if there is one.
  package func delay(at now: Duration) -> Duration {
    guard let fullAt else { return .zero }
    return max(.zero, fullAt + interval - depth - now)
  }

  /// Takes a token if there is one.
  package mutating func take(at now: Duration) -> Bool {
    guard delay(at: now) == .zero else { return false }
    fullAt = max(fullAt ?? now, now) + interval
    return true
  }

  /// Whether no token is taken, so that the bucket equals a new one.
  package func isFull(at now: Duration) -> Bool { fullAt.map { $0 <= now } ?? true }
}
