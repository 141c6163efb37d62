package import CacheCore

/// The parameters of a token bucket.
package struct RateLimit: Hashable, Sendable {
  /// The steady rate in requests per second.
  let perSecond: Double
  /// The number of requests that may be sent at once after a pause, at least 1.
  let burst: Int

  private static let rates = 0.001...1e9
  // The upper bound keeps the fill time of a bucket within the range of `Duration`, which traps on overflow.
  private static let bursts = 1...1_000_000_000

  /// Throws `CacheError.Code.invalidConfiguration` if one of the numbers is out of range.
  package static func check(perSecond: Double, burst: Int) throws(CacheError) {
    try CacheError.require("perSecond", perSecond, in: rates)
    try CacheError.require("burst", burst, in: bursts)
  }

  /// Creates a rate. A number out of range is replaced by the nearest valid one.
  package init(perSecond: Double, burst: Int = 1) {
    self.perSecond = perSecond > Self.rates.lowerBound ? min(perSecond, Self.rates.upperBound) : Self.rates.lowerBound
    self.burst = min(max(burst, Self.bursts.lowerBound), Self.bursts.upperBound)
  }

  /// The time between two requests at the steady rate.
  var interval: Duration { .nanoseconds(Int64((1e9 / perSecond).rounded(.up))) }
}
