/// A policy that decides when a load uses a cached response and when it sends a request.
public enum LoadPolicy: Hashable, Sendable {
  /// Follows RFC 9111: uses a fresh response and revalidates a stale one. A response without an explicit lifetime is revalidated,
  /// never assumed to be fresh.
  case standard
  /// Uses any cached response that has not reached the store's own time to live. Otherwise the load sends a request.
  case cacheFirst
  /// Sends a conditional request if a response is stored.
  ///
  /// - Parameters:
  ///   - atMostEvery: The minimum interval between requests, at least zero. A response that was stored or revalidated more
  ///     recently is used without a request. A request that the origin received and that failed counts too. Until the interval
  ///     has passed, loads use the stored response, with the failure as their `fallbackReason`, or else throw the same error. A
  ///     request that could not be sent, for example offline, does not count. A deadline counts if a request was in flight.
  ///     Failures of loads with `RequestOptions.hooks` and of `ResourceManager.respond(to:)` do not count.
  ///   - showCachedAfter: The time after which the stored response is used if the network is slower, at least zero. The request
  ///     continues in the background.
  case revalidate(atMostEvery: Duration? = nil, showCachedAfter: Duration? = nil)
  /// Reads nothing from the cache, but stores the response.
  case reload
  /// Sends no request and uses any stored response, however old. A miss throws ``CacheError/Code/notCached``.
  case cacheOnly
  /// Uses the memory store, or else sends a request. The disk is not read.
  case memoryElseReload
  /// Returns the stored response at once and revalidates it in the background (RFC 5861 §3). The event stream also delivers the
  /// updated response; other calls return only the stored one.
  case staleWhileRevalidate
}
