/// How many requests may be sent in a second, and how many at once after a pause: a token bucket.
///
/// For a list that is scrolled fast: the first screens are loaded at once, later ones at this rate, and what has left the screen
/// before its turn costs nothing, since a request that is cancelled while it waits takes no token.
public struct RateLimit: Hashable, Sendable {
  /// Requests a second in the long run.
  public let perSecond: Double
  /// Requests at once, when none was sent for a while; at least 1.
  public let burst: Int

  /// A rate of its parts.
  ///
  /// - Parameters:
  ///   - perSecond: from 0.001 to 1,000,000,000; what is out of that range, or no number, is its nearest end (no number: the
  ///     lower one).
  ///   - burst: from 1 to 1,000,000,000; what is out of that range is its nearest end.
  public init(perSecond: Double, burst: Int = 1) {
    self.perSecond = perSecond > 0.001 ? min(perSecond, 1e9) : 0.001
    // With an upper end too: the time in which a bucket fills must fit into a `Duration`, which overflows with a trap.
    self.burst = min(max(1, burst), 1_000_000_000)
  }

  /// Between two requests at the steady rate.
  var interval: Duration { .nanoseconds(Int64((1e9 / perSecond).rounded(.up))) }
}
