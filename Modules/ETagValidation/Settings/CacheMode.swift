/// Whose cache it is (RFC 9111 §1).
public enum CacheMode: String, Hashable, Sendable, CaseIterable {
  /// One user's own: an app's.
  case `private`
  /// One for many: a proxy's, a content delivery network's. `s-maxage`, `proxy-revalidate`, `private` and targeted fields count.
  case shared

  /// What is guessed about answers that state no lifetime, unless a validator is told otherwise: nothing in a private cache,
  /// since a user's next look should be at what is there now; a tenth of the age in a shared one, where an origin expects it.
  public var heuristics: Heuristics? { self == .shared ? Heuristics() : nil }
}
