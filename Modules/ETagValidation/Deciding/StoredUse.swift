internal import CacheCore

/// The permitted uses of a stored response at `now`, according to its freshness and the request's directives (RFC 9111 §4.2,
/// §4.2.4, §5.2.1).
struct StoredUse {
  let freshness: Freshness
  let directives: CacheControl
  let now: Timestamp

  /// Whether the response may be used without revalidation.
  var isFresh: Bool { freshness.isFresh(at: now) && !isRefused }

  /// Whether the request accepts the response although it is stale (`max-stale`), and the response does not forbid that.
  var isAcceptedStale: Bool { directives.maxStale != nil && mayShowStale }

  /// Whether the response, although stale, may be used while it is revalidated (RFC 5861 §3). A request that limits the age
  /// accepts no stale response.
  var mayStayWhileRevalidated: Bool {
    guard let until = freshness.staleWhileRevalidateUntil, now < until else { return false }
    return !isRefused && isStaleAcceptable && !freshness.requiresRevalidation
  }

  /// Whether the response may be used at once, fresh or stale.
  var mayShowStale: Bool { !freshness.requiresRevalidation && mayBeFallback }

  /// Whether the response may be used if the origin cannot be reached (RFC 9111 §4.2.4).
  var mayBeFallback: Bool {
    guard !isRefused else { return false }
    return freshness.isFresh(at: now) || (allowsOffline && isStaleAcceptable)
  }

  private var allowsOffline: Bool { freshness.staleIfErrorUntil.map { now < $0 } ?? false }

  /// Whether the response satisfies the request's limits of age and freshness, regardless of its own directives.
  var isAcceptable: Bool { !isRefused && (now < freshness.freshUntil || isStaleAcceptable) }

  /// Whether the request's directives rule out the response, fresh or stale. `max-age=0` does so even at age zero, because its
  /// purpose is to force revalidation.
  private var isRefused: Bool {
    if directives.noCache { return true }
    if let maxAge = directives.maxAge, maxAge == .zero || freshness.age(at: now) > maxAge { return true }
    if let minFresh = directives.minFresh, freshness.freshUntil - now < minFresh { return true }
    return false
  }

  /// Whether the request accepts a stale response. A limit of the age requires a fresh one, unless `max-stale` permits staleness
  /// (RFC 9111 §5.2.1.1, §5.2.1.2).
  private var isStaleAcceptable: Bool {
    if let maxStale = directives.maxStale { return now - freshness.freshUntil <= maxStale }
    return directives.maxAge == nil
  }
}
