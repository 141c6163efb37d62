internal import CacheCore
internal import HTTPTypes

/// The rules that derive ``Freshness`` from the fields of a response (RFC 9111 §4.2).
struct FreshnessRules {
  let rules: ResponseRules

  /// Returns the freshness of a response that was requested at `requestTime` and arrived at `responseTime`.
  func freshness(of response: HTTPResponse, requestTime: Timestamp, responseTime: Timestamp) -> Freshness {
    freshness(of: response, rules.directives(of: response.headerFields), requestTime: requestTime, responseTime: responseTime)
  }

  /// Returns the freshness, with directives that have already been read.
  func freshness(
    of response: HTTPResponse, _ directives: ResponseDirectives, requestTime: Timestamp, responseTime: Timestamp
  ) -> Freshness {
    let fields = response.headerFields
    // Without a valid `Date`, use the time of arrival (RFC 9110 §6.6.1).
    let date = fields.date(receivedAt: responseTime) ?? responseTime
    let age = Self.age(of: fields, date: date, requestTime: requestTime, responseTime: responseTime)
    let generatedAt = responseTime - age
    let lifetime =
      Self.explicitLifetime(of: fields, directives, date: date, receivedAt: responseTime)
      ?? guessedLifetime(of: response, directives, date: date, receivedAt: responseTime) ?? .zero
    let freshUntil = generatedAt + max(.zero, lifetime)
    let neverStale = directives.stated.noCache || directives.mustRevalidate
    return Freshness(
      generatedAt: generatedAt, freshUntil: freshUntil, requiresRevalidation: directives.stated.noCache,
      staleWhileRevalidateUntil: neverStale ? nil : directives.stated.staleWhileRevalidate.map { freshUntil + $0 },
      staleIfErrorUntil: neverStale ? nil : .distantFuture)
  }

  /// Returns `corrected_initial_age` (RFC 9111 §4.2.3). Clock skew can only make a response older, never younger.
  private static func age(of fields: HTTPFields, date: Timestamp, requestTime: Timestamp, responseTime: Timestamp) -> Duration {
    let apparent = max(.zero, responseTime - date)
    let delay = max(.zero, responseTime - requestTime)
    return max(apparent, (fields.statedAge ?? .zero) + delay)
  }

  /// Returns the lifetime that the origin states (RFC 9111 §4.2.1), or `nil` if it states none. An invalid lifetime is zero.
  static func explicitLifetime(
    of fields: HTTPFields, _ directives: ResponseDirectives, date: Timestamp, receivedAt now: Timestamp
  ) -> Duration? {
    if let lifetime = directives.lifetime { return lifetime }
    guard !directives.isTargeted, fields.contains(.expires) else { return nil }
    // Of several lines, the earliest applies. An invalid one (`0`, `-1`, a zone other than GMT) has already expired (§4.2, §5.3).
    let expires = fields[values: .expires].map { HTTPDate(expiration: $0, receivedAt: now)?.timestamp ?? .distantPast }.min()
    return max(.zero, (expires ?? .distantPast) - date)
  }

  /// Returns the heuristic lifetime (RFC 9111 §4.2.2), for heuristically cacheable status codes and for `public` responses.
  func guessedLifetime(
    of response: HTTPResponse, _ directives: ResponseDirectives, date: Timestamp, receivedAt now: Timestamp
  ) -> Duration? {
    guard StatusRule.isHeuristicallyCacheable(response.status.code) || directives.stated.isPublic else { return nil }
    if let heuristics = rules.heuristics, let line = response.headerFields.single(.lastModified),
      let modified = HTTPDate(line.value, receivedAt: now)?.timestamp
    {
      let unchanged = max(0, (date - modified).components.seconds)
      return min(heuristics.longest, .seconds(unchanged * Int64(heuristics.percent) / 100))
    }
    return rules.defaultLifetime
  }
}
