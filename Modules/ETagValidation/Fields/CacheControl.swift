package import HTTPTypes

/// The directives of `Cache-Control`, of a request or a response (RFC 9111 §5.2, RFC 5861, RFC 8246).
///
/// Reading never fails: what can't be understood has the meaning that serves least from a cache.
///
/// - Names in any case, blanks around commas, empty members and several field lines are accepted; unknown directives are ignored
///   (§5.2.3).
/// - Numbers may be quoted. More than 2^31 is 2^31 (§1.2.2). A missing, negative, fractional or otherwise unreadable number is 0,
///   so the answer is stale (§4.2.1); for `min-fresh` it is 2^31.
/// - When a directive is stated twice, the more restrictive value counts: the smaller number, for `min-fresh` the larger. (§4.2.1
///   allows the first value or "stale"; the smallest is never fresher than the first.)
///
/// ```swift
/// let directives = CacheControl("public, max-age=60, stale-while-revalidate=30")
/// directives.maxAge  // 60 seconds
/// ```
package struct CacheControl: Hashable, Sendable {
  /// Response: the lifetime (§5.2.2.1). Request: the greatest age that is accepted (§5.2.1.1).
  package var maxAge: Duration?
  /// The lifetime in a shared cache, where it counts instead of ``maxAge``; a private one ignores it (§5.2.2.10).
  package var sharedMaxAge: Duration?
  /// How long after its lifetime an answer may be used while it is revalidated (RFC 5861 §3).
  package var staleWhileRevalidate: Duration?
  /// How long after its lifetime an answer may stand in for an error (RFC 5861 §4).
  package var staleIfError: Duration?
  /// Request: how long the answer must stay fresh yet (§5.2.1.3).
  package var minFresh: Duration?
  /// Request: how long after its lifetime an answer is accepted; ``anyAge`` when no number was given (§5.2.1.2).
  package var maxStale: Duration?

  /// Nothing of it may be stored (§5.2.1.5, §5.2.2.5).
  package var noStore = false
  /// Ask before every use (§5.2.1.4, §5.2.2.4). False for the form with field names in quotes, unless one of them is a field that
  /// caches decide by.
  package var noCache = false
  /// The fields that `no-cache="…"` lets nobody see without asking, in lower case: the answer is stored without them.
  package var noCacheFields: [String] = []
  /// Don't change the content (§5.2.1.6, §5.2.2.6).
  package var noTransform = false
  /// Request: don't ask the network (§5.2.1.7).
  package var onlyIfCached = false
  /// Never use it stale (§5.2.2.2).
  package var mustRevalidate = false
  /// As ``mustRevalidate``, for shared caches (§5.2.2.8).
  package var proxyRevalidate = false
  /// Store it only when its status is understood (§5.2.2.3).
  package var mustUnderstand = false
  /// May be stored though it usually would not (§5.2.2.9).
  package var isPublic = false
  /// Not for shared caches (§5.2.2.7). False for the form with field names in quotes, unless one of them is a field that caches
  /// decide by.
  package var isPrivate = false
  /// The fields that `private="…"` keeps from shared caches, in lower case: these store the answer without them.
  package var privateFields: [String] = []
  /// Does not change while it is fresh (RFC 8246 §2).
  package var immutable = false

  /// What ``maxStale`` is when the request states no limit.
  package static let anyAge = Duration.seconds(Int64.max)

  /// No directives.
  package init() {}

  /// The directives of one field line.
  package init(_ line: String) { read(line) }

  /// The directives of all `Cache-Control` lines.
  package init(_ fields: HTTPFields) {
    guard fields.contains(.cacheControl) else { return }
    for line in fields[values: .cacheControl] { read(line) }
  }

  /// A request's directives. `Pragma: no-cache` is `no-cache` when there is no `Cache-Control` at all (§5.4).
  package init(request: HTTPRequest) {
    self.init(request.headerFields)
    guard !request.headerFields.contains(.cacheControl) else {
      // Names mean nothing in a request.
      if !noCacheFields.isEmpty { noCache = true }
      return
    }
    noCache = request.headerFields.contains { field in
      field.name.canonicalName == "pragma" && FieldList(field.value).contains { Directive($0).name == "no-cache" }
    }
  }
}
