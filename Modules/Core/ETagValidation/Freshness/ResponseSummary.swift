internal import CacheCore
internal import HTTPTypes

/// The fields of a response that decide about caching, read in one pass. Directives for the other mode are ignored.
struct ResponseSummary {
  /// The directives that apply to this cache. They come from the first valid targeted field, or else from `Cache-Control` (RFC
  /// 9213 §2.2).
  let directives: CacheControl
  /// The names in `Vary`.
  let vary: Vary
  let setsCookie: Bool
  /// Whether a targeted field applies, so that `Cache-Control` and `Expires` do not.
  private let isTargeted: Bool
  /// The earliest valid `Date`, or `nil` if there is none. A response can thereby be too old, but not too young.
  private let date: Timestamp?
  /// The earliest `Expires`. An invalid one (`0`, `-1`, a zone other than GMT) has already expired (RFC 9111 §4.2, §5.3).
  private let expires: Timestamp?
  private let statedAge: Duration?
  private let mode: CacheMode
  private let responseTime: Timestamp

  /// Reads the fields of a response that arrived at `responseTime`.
  init(_ fields: HTTPFields, _ rules: ResponseRules, responseTime: Timestamp) {
    var directives = CacheControl()
    var (date, expires): (Timestamp?, Timestamp?)
    var (hasAge, hasVary, setsCookie) = (false, false, false)
    for position in 0..<fields.count {
      let name = fields[position].name.canonicalName
      // Compares the length first, because every field of every response is checked.
      switch name.utf8.count {
      case 3 where name == "age": hasAge = true
      case 4 where name == "date":
        if let time = HTTPDate(fields[position].value, receivedAt: responseTime)?.timestamp { date = min(date ?? time, time) }
      case 4 where name == "vary": hasVary = true
      case 7 where name == "expires":
        let time = HTTPDate(expiration: fields[position].value, receivedAt: responseTime)?.timestamp ?? .distantPast
        expires = min(expires ?? time, time)
      case 10 where name == "set-cookie": setsCookie = true
      case 13 where name == "cache-control": directives.read(fields[position].value)
      default: break
      }
    }
    var isTargeted = false
    if rules.mode == .shared {
      for name in rules.targets where !isTargeted {
        guard let targeted = CacheControl(targeted: name, of: fields) else { continue }
        (directives, isTargeted) = (targeted, true)
      }
    }
    self.directives = directives
    self.isTargeted = isTargeted
    self.date = date
    self.expires = expires
    self.setsCookie = setsCookie
    self.responseTime = responseTime
    mode = rules.mode
    statedAge = hasAge ? fields.statedAge : nil
    vary = hasVary ? Vary(fields) : Vary()
  }

  /// Whether the response must never be used stale (RFC 9111 §5.2.2.2). In a shared cache, `proxy-revalidate` (§5.2.2.8) and
  /// `s-maxage` (§5.2.2.10) have the same effect.
  private var mustRevalidate: Bool {
    directives.mustRevalidate || (mode == .shared && (directives.proxyRevalidate || directives.sharedMaxAge != nil))
  }

  /// Whether this cache must not store the response because it belongs to a single user (§5.2.2.7).
  var forbidsSharedStorage: Bool { mode == .shared && directives.isPrivate }

  /// Whether a shared cache may store the response to a request with `Authorization` (§3.5).
  var allowsAuthorized: Bool {
    mode == .private || directives.mustRevalidate || directives.isPublic || directives.sharedMaxAge != nil
  }

  /// Whether a directive permits storing a response with any status (§3).
  var allowsAnyStatus: Bool { directives.isPublic || (mode == .private && directives.isPrivate) }

  /// The names, in lower case, of the fields that are not stored (§5.2.2.4, §5.2.2.7).
  var leftOut: Set<String> {
    if directives.noCacheFields.isEmpty, directives.privateFields.isEmpty { return [] }
    return Set(mode == .shared ? directives.noCacheFields + directives.privateFields : directives.noCacheFields)
  }
}

// The lifetime and the age of a response (RFC 9111 §4.2).
extension ResponseSummary {
  /// Returns the freshness of the response.
  func freshness(of response: HTTPResponse, requestTime: Timestamp, _ rules: ResponseRules) -> Freshness {
    let generatedAt = responseTime - age(requestTime)
    let freshUntil = generatedAt + (statedLifetime ?? guessedLifetime(of: response, rules) ?? .zero)
    let neverStale = directives.noCache || mustRevalidate
    return Freshness(
      generatedAt: generatedAt, freshUntil: freshUntil, requiresRevalidation: directives.noCache,
      staleWhileRevalidateUntil: neverStale ? nil : directives.staleWhileRevalidate.map { freshUntil + $0 },
      staleIfErrorUntil: neverStale ? nil : .distantFuture)
  }

  /// Returns `corrected_initial_age` (§4.2.3). Clock skew can only make a response older, never younger.
  private func age(_ requestTime: Timestamp) -> Duration {
    let apparent = max(.zero, responseTime - generated)
    let delay = max(.zero, responseTime - requestTime)
    return max(apparent, (statedAge ?? .zero) + delay)
  }

  /// The time of `Date`. Without a valid one, it is the time of arrival (RFC 9110 §6.6.1).
  private var generated: Timestamp { date ?? responseTime }

  /// The lifetime that the origin states (§4.2.1), or `nil` if it states none. An invalid lifetime is zero. In a shared cache
  /// `s-maxage` takes precedence.
  var statedLifetime: Duration? {
    if mode == .shared, let lifetime = directives.sharedMaxAge { return lifetime }
    if let lifetime = directives.maxAge { return lifetime }
    guard !isTargeted, let expires else { return nil }
    return max(.zero, expires - generated)
  }

  /// Returns the heuristic lifetime (§4.2.2), for heuristically cacheable status codes and for `public` responses.
  private func guessedLifetime(of response: HTTPResponse, _ rules: ResponseRules) -> Duration? {
    guard StatusRule.isHeuristicallyCacheable(response.status.code) || directives.isPublic else { return nil }
    if let heuristics = rules.heuristics, let line = response.headerFields.single(.lastModified),
      let modified = HTTPDate(line.value, receivedAt: responseTime)?.timestamp
    {
      let unchanged = max(0, (generated - modified).components.seconds)
      return min(heuristics.longest, .seconds(unchanged * Int64(heuristics.percent) / 100))
    }
    return rules.defaultLifetime
  }
}

/// The settings that determine how a cache reads responses: its mode, its targeted fields, and its default lifetimes.
struct ResponseRules: Hashable {
  var mode: CacheMode
  /// The targeted fields in order of precedence (RFC 9213 §2.2). A private cache ignores them.
  var targets: [HTTPField.Name]
  var heuristics: Heuristics?
  var defaultLifetime: Duration?
  /// Whether a shared cache stores and shares responses with cookies like any others.
  var ignoresCookies = false
}
