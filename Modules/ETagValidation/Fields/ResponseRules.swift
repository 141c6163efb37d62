internal import HTTPTypes

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
