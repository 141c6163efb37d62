internal import CacheCore
internal import HTTPTypes

/// How an answer's fields become `Freshness` (RFC 9111 §4.2).
struct FreshnessRules {
  let rules: ResponseRules

  /// What a hit needs to know about `response`, which was asked for at `requestTime` and came at `responseTime`.
  func freshness(of response: HTTPResponse, requestTime: Timestamp, responseTime: Timestamp) -> Freshness {
    freshness(of: response, rules.directives(of: response.headerFields), requestTime: requestTime, responseTime: responseTime)
  }

  /// As ``freshness(of:requestTime:responseTime:)``, with the directives at hand.
  func freshness(
    of response: HTTPResponse, _ directives: ResponseDirectives, requestTime: Timestamp, responseTime: Timestamp
  ) -> Freshness {
    let fields = response.headerFields
    // Without a usable `Date` the time of arrival stands in for it (RFC 9110 §6.6.1).
    let date = Self.date(of: fields, receivedAt: responseTime) ?? responseTime
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

  /// When the origin made the answer, as the first `Date` line says; nil when there is none or it can't be read.
  static func date(of fields: HTTPFields, receivedAt now: Timestamp) -> Timestamp? {
    fields.first(.date).flatMap { HTTPDate($0.value, receivedAt: now)?.timestamp }
  }

  /// `corrected_initial_age` (RFC 9111 §4.2.3). Clocks that run apart make an answer older, never younger.
  private static func age(of fields: HTTPFields, date: Timestamp, requestTime: Timestamp, responseTime: Timestamp) -> Duration {
    let apparent = max(.zero, responseTime - date)
    let delay = max(.zero, responseTime - requestTime)
    // The first member of a list counts; what is no number is ignored (§5.1).
    let stated = fields.first(.age).flatMap { field in
      FieldList(field.value).first { _ in true }.flatMap { DeltaSeconds.duration($0) }
    }
    return max(apparent, (stated ?? .zero) + delay)
  }

  /// The lifetime that the origin states (RFC 9111 §4.2.1), nil when it states none. An unreadable statement is one: zero.
  static func explicitLifetime(
    of fields: HTTPFields, _ directives: ResponseDirectives, date: Timestamp, receivedAt now: Timestamp
  ) -> Duration? {
    if let lifetime = directives.lifetime { return lifetime }
    guard !directives.isTargeted, fields.contains(.expires) else { return nil }
    // Of several lines the earliest counts; one that can't be read (`0`, `-1`, junk) has expired already (§5.3).
    let expires = fields[values: .expires].map { HTTPDate($0, receivedAt: now)?.timestamp ?? .distantPast }.min()
    return max(.zero, (expires ?? .distantPast) - date)
  }

  /// The lifetime that is guessed (RFC 9111 §4.2.2): for statuses that may be guessed about, and for answers that are marked as
  /// `public`.
  func guessedLifetime(
    of response: HTTPResponse, _ directives: ResponseDirectives, date: Timestamp, receivedAt now: Timestamp
  ) -> Duration? {
    guard StatusRule.isHeuristicallyCacheable(response.status.code) || directives.stated.isPublic else { return nil }
    if let heuristics = rules.heuristics, let line = response.headerFields.first(.lastModified),
      let modified = HTTPDate(line.value, receivedAt: now)?.timestamp
    {
      let unchanged = max(0, (date - modified).components.seconds)
      return min(heuristics.longest, .seconds(unchanged * Int64(heuristics.percent) / 100))
    }
    return rules.defaultLifetime
  }
}
