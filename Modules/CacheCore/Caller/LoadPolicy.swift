/// A policy that decides when a load uses a cached response and when it sends a request.
public enum LoadPolicy: Hashable, Sendable {
  /// Follows RFC 9111: uses a fresh response and revalidates a stale one. A response without an explicit lifetime is revalidated,
  /// never assumed to be fresh.
  case standard
  /// Uses any cached response that has not reached the store's own time to live. Otherwise the load sends a request.
  case cacheFirst
  /// Sends a conditional request if a response is stored. A fresh response whose origin states that it does not change
  /// (`immutable`, RFC 8246) is used without a request.
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

/// The stored responses that a load may use in place of a response that did not arrive, or that reports a failure.
///
/// The setting concerns this cache alone, and nothing of it is sent to the origin. A stored response never replaces one of
/// another variant or partition, one to an unsafe request, or one with ``LoadPolicy/reload``. A cancellation and errors of the
/// program, such as ``CacheError/Code/misuse``, remain errors.
///
/// ```swift
/// let lastKnown = RequestOptions { $0.staleFallback = .anyStored }
/// ```
public enum StaleFallback: Hashable, Sendable, CaseIterable {
  /// The validator decides (RFC 9111 §4.2.4, RFC 5861 §4). A stored response is used if no response arrives, unless a directive
  /// such as `must-revalidate` forbids it. With `stale-if-error`, it also replaces a server error.
  case standard
  /// Any stored response is used, whatever the failure and the directives are: offline, after a timeout, or for a status that the
  /// load does not accept. For an HTTP caller, a 429 and the statuses from 500 are failures.
  ///
  /// The failed response is not stored. A response that arrived completely replaces the stored one, even if a transform then
  /// fails to decode it.
  case anyStored
  /// No stored response is used. The failure is the error of the load.
  case never
}
