/// The delay before a request is sent again: exponential, capped, with full jitter.
///
/// The delay is a uniform random value from zero to `base × multiplier^(n-1)`, at most `cap`, where *n* is the number of requests
/// sent so far. Full jitter spreads the retries of clients that failed together.
public struct Backoff: Hashable, Sendable {
  /// The maximum delay after the first request, at least zero.
  public var base: Duration
  /// The maximum delay after any request, at least zero.
  public var cap: Duration
  /// The growth factor of the maximum delay per request, at least 1.
  public var multiplier: Double

  /// Creates a back-off. With a number out of its range, a downloader with the policy fails each request with
  /// `CacheError.Code.invalidConfiguration`. The functions of the back-off use the nearest valid number.
  public init(base: Duration = .milliseconds(500), cap: Duration = .seconds(20), multiplier: Double = 2) {
    self.base = base
    self.cap = cap
    self.multiplier = multiplier
  }

  /// Returns the maximum delay after the given number of requests.
  ///
  /// - Parameter attempt: The number of requests sent so far, counted from 1.
  public func limit(after attempt: Int) -> Duration {
    let (base, cap) = (max(base, .zero), max(cap, .zero))
    guard base > .zero, cap > base else { return min(base, cap) }
    var limit = base
    // A `Duration` traps on overflow, so it is multiplied only while the result stays below the cap.
    for _ in 1..<max(attempt, 1) {
      guard limit / cap * max(multiplier, 1) < 1 else { return cap }
      let next = limit * max(multiplier, 1)
      if next == limit { break }
      limit = next
    }
    return min(limit, cap)
  }

  /// Returns the delay after the given number of requests.
  ///
  /// - Parameters:
  ///   - attempt: The number of requests sent so far, counted from 1.
  ///   - fraction: A random number from 0 to 1.
  public func delay(after attempt: Int, fraction: Double) -> Duration {
    limit(after: attempt) * min(max(fraction.isNaN ? 1 : fraction, 0), 1)
  }
}
