package import HTTPTypes

/// The directives of a `Cache-Control` field in a request or a response (RFC 9111 §5.2, RFC 5861, RFC 8246).
///
/// Reading never fails. Invalid input has the meaning that allows the least use of a cache.
///
/// - Directive names are case-insensitive. Blanks around commas, empty members and several field lines are accepted. Unknown
///   directives are ignored (§5.2.3).
/// - Numbers may be quoted. Numbers above 2^31 are read as 2^31 (§1.2.2). A missing, negative, fractional or otherwise invalid
///   number is read as 0, so the response is stale (§4.2.1). For `min-fresh` it is read as 2^31.
/// - If a directive occurs twice, the more restrictive value applies. That is the smaller number, or the larger one for
///   `min-fresh`. §4.2.1 allows the first value or "stale", and the smallest is never fresher than the first.
///
/// ```swift
/// let directives = CacheControl("public, max-age=60, stale-while-revalidate=30")
/// directives.maxAge  // 60 seconds
/// ```
package struct CacheControl: Hashable, Sendable {
  /// The freshness lifetime in a response (§5.2.2.1), or the maximum accepted age in a request (§5.2.1.1).
  package var maxAge: Duration?
  /// The lifetime in a shared cache, where it overrides ``maxAge``. A private cache ignores it (§5.2.2.10).
  package var sharedMaxAge: Duration?
  /// The time after the lifetime during which a response may be used while it is revalidated (RFC 5861 §3).
  package var staleWhileRevalidate: Duration?
  /// The time after the lifetime during which a response may replace an error (RFC 5861 §4).
  package var staleIfError: Duration?
  /// The minimum remaining lifetime that a request requires (§5.2.1.3).
  package var minFresh: Duration?
  /// The time after the lifetime during which a request accepts a response. It is ``anyAge`` without a number (§5.2.1.2).
  package var maxStale: Duration?

  /// Whether the message must not be stored (§5.2.1.5, §5.2.2.5).
  package var noStore = false
  /// Whether each use requires revalidation (§5.2.1.4, §5.2.2.4). It is false for the form with quoted field names, unless one of
  /// them is a field that caches depend on.
  package var noCache = false
  /// The field names of `no-cache="…"`, in lower case. They must not be used without revalidation, so the response is stored
  /// without them.
  package var noCacheFields: [String] = []
  /// Whether the content must not be changed (§5.2.1.6, §5.2.2.6).
  package var noTransform = false
  /// Whether the request must not be forwarded (§5.2.1.7).
  package var onlyIfCached = false
  /// Whether the response must not be used stale (§5.2.2.2).
  package var mustRevalidate = false
  /// Whether a shared cache must not use the response stale (§5.2.2.8).
  package var proxyRevalidate = false
  /// Whether the response may be stored only if its status code is understood (§5.2.2.3).
  package var mustUnderstand = false
  /// Whether the response may be stored although that is usually not allowed (§5.2.2.9).
  package var isPublic = false
  /// Whether a shared cache must not store the response (§5.2.2.7). It is false for the form with quoted field names, unless one
  /// of them is a field that caches depend on.
  package var isPrivate = false
  /// The field names of `private="…"`, in lower case. Shared caches store the response without them.
  package var privateFields: [String] = []
  /// Whether the response does not change while it is fresh (RFC 8246 §2).
  package var immutable = false

  /// The value of ``maxStale`` if the request states no limit.
  package static let anyAge = Duration.seconds(Int64.max)

  /// Creates an empty set of directives.
  package init() {}

  /// Creates the directives of one field line.
  package init(_ line: String) { read(line) }

  /// Creates the directives of all `Cache-Control` lines.
  package init(_ fields: HTTPFields) {
    for position in fields.positions(of: .cacheControl) { read(fields[position].value) }
  }

  /// Creates the directives of a request. `Pragma: no-cache` means `no-cache` if there is no `Cache-Control` (§5.4).
  package init(request: HTTPRequest) {
    let fields = request.headerFields
    var (hasCacheControl, isPragmatic) = (false, false)
    for position in 0..<fields.count {
      let name = fields[position].name.canonicalName
      switch name.utf8.count {
      case 6 where name == "pragma":
        let forbids = fields[position].withUnsafeBytesOfValue { FieldList($0).contains { Directive($0).name.isName("no-cache") } }
        if forbids { isPragmatic = true }
      case 13 where name == "cache-control":
        hasCacheControl = true
        read(fields[position].value)
      default: break
      }
    }
    // Field names have no meaning in a request.
    if hasCacheControl ? !noCacheFields.isEmpty : isPragmatic { noCache = true }
  }
}
