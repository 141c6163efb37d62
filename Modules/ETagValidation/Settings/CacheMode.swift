/// The kind of a cache (RFC 9111 §1).
public enum CacheMode: String, Hashable, Sendable, CaseIterable {
  /// A cache for a single user, such as an app's.
  case `private`
  /// A cache for many users, such as a proxy or a content delivery network. It obeys `s-maxage`, `proxy-revalidate`, `private`
  /// and targeted fields.
  case shared

  /// The default heuristics for responses that state no lifetime. A private cache has none, so that its user sees the current
  /// state. A shared cache has a tenth of the age, which origins expect.
  public var heuristics: Heuristics? { self == .shared ? Heuristics() : nil }
}
