internal import HTTPTypes

/// The directives of an answer as they count in this cache: of the first targeted field that can be read, else of `Cache-Control`
/// (RFC 9213 §2.2), and without what is meant for caches of the other mode.
struct ResponseDirectives {
  let stated: CacheControl
  /// A targeted field decides, and neither `Cache-Control` nor `Expires` counts.
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

  /// The lifetime that a directive states: in a shared cache `s-maxage`, where there is one (RFC 9111 §4.2.1).
  var lifetime: Duration? { mode == .shared ? stated.sharedMaxAge ?? stated.maxAge : stated.maxAge }

  /// Whether it must never be used stale (§5.2.2.2). In a shared cache `proxy-revalidate` says so too (§5.2.2.8), and with it
  /// `s-maxage` (§5.2.2.10).
  var mustRevalidate: Bool {
    stated.mustRevalidate || (mode == .shared && (stated.proxyRevalidate || stated.sharedMaxAge != nil))
  }

  /// Whether this cache may not store the answer because it is one user's (§5.2.2.7).
  var isOthers: Bool { mode == .shared && stated.isPrivate }

  /// Whether a shared cache may store the answer to a request with `Authorization` (§3.5).
  var allowsAuthorised: Bool {
    mode == .private || stated.mustRevalidate || stated.isPublic || stated.sharedMaxAge != nil
  }

  /// Whether a directive lets an answer of any status be stored (§3).
  var allowsAnyStatus: Bool { stated.isPublic || (mode == .private && stated.isPrivate) }

  /// The fields that the answer is stored without (§5.2.2.4, §5.2.2.7), in lower case.
  var leftOut: [String] { mode == .shared ? stated.noCacheFields + stated.privateFields : stated.noCacheFields }
}
