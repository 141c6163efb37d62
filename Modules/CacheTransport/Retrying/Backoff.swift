/// How long to wait before a request is sent again: exponential, capped, with full jitter.
///
/// The wait is drawn evenly from zero to `base × multiplier^(n-1)`, at most `cap`, where *n* is the number of requests that have
/// been sent. Full jitter spreads clients that failed together over the whole time instead of letting them come back together.
public struct Backoff: Hashable, Sendable {
  /// The longest wait after the first request.
  public var base: Duration
  /// The longest wait ever.
  public var cap: Duration
  /// By how much the longest wait grows with each request.
  public var multiplier: Double

  /// A back-off of its parts; what makes no sense (negative times, a multiplier below 1) is taken as the nearest that does.
  public init(base: Duration = .milliseconds(500), cap: Duration = .seconds(20), multiplier: Double = 2) {
    self.base = base
    self.cap = cap
    self.multiplier = multiplier
  }

  /// The longest wait after so many requests.
  ///
  /// - Parameter attempt: how many requests have been sent, counted from 1.
  public func limit(after attempt: Int) -> Duration {
    let (base, cap) = (max(base, .zero), max(cap, .zero))
    guard base > .zero, cap > base else { return min(base, cap) }
    var limit = base
    // A `Duration` overflows with a trap, so the step is taken only where the next is still below the cap.
    for _ in 1..<max(attempt, 1) {
      guard limit / cap * max(multiplier, 1) < 1 else { return cap }
      let next = limit * max(multiplier, 1)
      if next == limit { break }
      limit = next
    }
    return min(limit, cap)
  }

  /// The wait after so many requests.
  ///
  /// - Parameters:
  ///   - attempt: how many requests have been sent, counted from 1.
  ///   - fraction: from 0 to 1, drawn at random.
  public func delay(after attempt: Int, fraction: Double) -> Duration {
    limit(after: attempt) * min(max(fraction.isNaN ? 1 : fraction, 0), 1)
  }
}
