/// The parameters of a token bucket.
package struct RateLimit: Hashable, Sendable {
  /// The steady rate in requests per second.
  let perSecond: Double
  /// The number of requests that may be sent at once after a pause, at least 1.
  let burst: Int

  /// Creates a rate. A number out of range is replaced by the nearest valid one.
  package init(perSecond: Double, burst: Int = 1) {
    self.perSecond = perSecond > 0.001 ? min(perSecond, 1e9) : 0.001
    // The upper bound keeps the fill time of a bucket within the range of `Duration`, which traps on overflow.
    self.burst = min(max(1, burst), 1_000_000_000)
  }

  /// The time between two requests at the steady rate.
  var interval: Duration { .nanoseconds(Int64((1e9 / perSecond).rounded(.up))) }
}
