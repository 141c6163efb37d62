/// Why a request went past the cache (RFC 9211 §2.2).
public enum ForwardReason: String, Hashable, Sendable, CaseIterable {
  /// The cache was told not to take part.
  case bypass
  /// Nothing that is stored may answer this method.
  case method
  /// Nothing is stored of the resource.
  case uriMiss = "uri-miss"
  /// Something is stored, but for other selecting fields (RFC 9111 §4.1).
  case varyMiss = "vary-miss"
  /// Nothing usable is stored, for a reason that none of the others names.
  case miss
  /// A fresh answer is stored, but the request forbids its use (`Cache-Control`, a precondition that only the origin may judge).
  case request
  /// What is stored is stale, or must be asked about before each use.
  case stale
  /// A part is stored, and the request needs more of it.
  case partial
}
