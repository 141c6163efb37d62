#if Service
internal import CacheCore
internal import CacheTransport

/// The request rates of clients: a token bucket for each.
final class ClientRates: Sendable {
  private struct State {
    var buckets: [String: TokenBucket] = [:]
    /// The number of clients at which full buckets are removed.
    var cleanupCount = 1_024
  }

  private let limit: RateLimit
  private let state = Lock(State())

  init(_ limit: ImageService.Rate) {
    self.limit = RateLimit(perSecond: limit.perSecond, burst: limit.burst)
  }

  /// Counts a request. Returns `nil` if it is allowed, or else the time after which the next one is.
  func take(_ client: String, at now: Duration) -> Duration? {
    state.withLock { state in
      var bucket = state.buckets[client] ?? TokenBucket(limit)
      let delay = bucket.delay(at: now)
      guard bucket.take(at: now) else { return delay }
      state.buckets[client] = bucket
      if state.buckets.count > state.cleanupCount {
        // A full bucket is like none. The number doubles, so that the work for each request is constant.
        state.buckets = state.buckets.filter { !$0.value.isFull(at: now) }
        state.cleanupCount = max(1_024, state.buckets.count * 2)
      }
      return nil
    }
  }
}
#endif
