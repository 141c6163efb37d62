internal import CacheCore

/// What a stored answer may be used for at `now`, by its own facts and by what the request accepts (RFC 9111 §4.2, §4.2.4,
/// §5.2.1).
struct StoredUse {
  let freshness: Freshness
  let directives: CacheControl
  let now: Timestamp

  /// Without asking.
  var isFresh: Bool { freshness.isFresh(at: now) && !isRefused }

  /// Stale, but the request says that it takes it (`max-stale`), and the answer does not forbid it.
  var isAcceptedStale: Bool { directives.maxStale != nil && mayShowStale }

  /// Stale, but the answer says that it may be used while it is revalidated (RFC 5861 §3). A request that limits the age wants no
  /// stale answer.
  var mayStayWhileRevalidated: Bool {
    guard let until = freshness.staleWhileRevalidateUntil, now < until else { return false }
    return !isRefused && isStaleWelcome && !freshness.requiresRevalidation
  }

  /// May be shown at once, fresh or stale.
  var mayShowStale: Bool { !freshness.requiresRevalidation && mayStandIn }

  /// May be shown when nobody can be asked (RFC 9111 §4.2.4).
  var mayStandIn: Bool {
    guard !isRefused else { return false }
    return freshness.isFresh(at: now) || (allowsOffline && isStaleWelcome)
  }

  private var allowsOffline: Bool { freshness.staleIfErrorUntil.map { now < $0 } ?? false }

  /// Whether it keeps to what the request says about age and freshness, whatever the answer itself allows.
  var isWelcome: Bool { !isRefused && (now < freshness.freshUntil || isStaleWelcome) }

  /// What the request says rules this answer out, fresh or stale. `max-age=0` does even at age zero: whoever sends it wants to
  /// ask.
  private var isRefused: Bool {
    if directives.noCache { return true }
    if let maxAge = directives.maxAge, maxAge == .zero || freshness.age(at: now) > maxAge { return true }
    if let minFresh = directives.minFresh, freshness.freshUntil - now < minFresh { return true }
    return false
  }

  /// A limit to the age asks for a fresh answer, unless `max-stale` says how stale it may be (RFC 9111 §5.2.1.1, §5.2.1.2).
  private var isStaleWelcome: Bool {
    if let maxStale = directives.maxStale { return now - freshness.freshUntil <= maxStale }
    return directives.maxAge == nil
  }
}
