internal import HTTPTypes

/// The directives of a response that apply to this cache. They come from the first valid targeted field, or else from
/// `Cache-Control` (RFC 9213 §2.2). Directives for the other mode are ignored.
struct ResponseDirectives {
  let stated: CacheControl
  /// Whether a targeted field applies, so that `Cache-Control` and `Expires` do not.
  let isTargeted: Bool
  private let mode: CacheMode

  init(_ fields: HTTPFields, _ rules: ResponseRules) {
    mode = rules.mode
    if rules.mode == .shared {
      for name in rules.targets {
        guard let directives = CacheControl(targeted: name, of: fields) else { continue }
        (stated, isTargeted) = (directives, true)
        return
      }
    }
    (stated, isTargeted) = (CacheControl(fields), false)
  }

  /// The lifetime that a directive states. In a shared cache `s-maxage` takes precedence (RFC 9111 §4.2.1).
  var lifetime: Duration? { mode == .shared ? stated.sharedMaxAge ?? stated.maxAge : stated.maxAge }

  /// Whether the response must never be used stale (§5.2.2.2). In a shared cache, `proxy-revalidate` (§5.2.2.8) and `s-maxage`
  /// (§5.2.2.10) have the same effect.
  var mustRevalidate: Bool {
    stated.mustRevalidate || (mode == .shared && (stated.proxyRevalidate || stated.sharedMaxAge != nil))
  }

  /// Whether this cache must not store the response because it belongs to a single user (§5.2.2.7).
  var forbidsSharedStorage: Bool { mode == .shared && stated.isPrivate }

  /// Whether a shared cache may store the response to a request with `Authorization` (§3.5).
  var allowsAuthorized: Bool {
    mode == .private || stated.mustRevalidate || stated.isPublic || stated.sharedMaxAge != nil
  }

  /// Whether a directive permits storing a response with any status (§3).
  var allowsAnyStatus: Bool { stated.isPublic || (mode == .private && stated.isPrivate) }

  /// The names, in lower case, of the fields that are not stored (§5.2.2.4, §5.2.2.7).
  var leftOut: [String] { mode == .shared ? stated.noCacheFields + stated.privateFields : stated.noCacheFields }
}
