/// The reason why a cache forwarded a request (RFC 9211 §2.2).
public enum ForwardReason: String, Hashable, Sendable, CaseIterable {
  /// The cache was configured not to handle the request.
  case bypass
  /// The method does not allow a stored response.
  case method
  /// No response is stored for the resource.
  case uriMiss = "uri-miss"
  /// A response is stored, but only for other selecting fields (RFC 9111 §4.1).
  case varyMiss = "vary-miss"
  /// No usable response is stored, for a reason that no other case describes.
  case miss
  /// A fresh response is stored, but the request does not allow its use. Examples are a `Cache-Control` directive and a
  /// precondition that only the origin may evaluate.
  case request
  /// The stored response is stale, or must be revalidated before each use.
  case stale
  /// A partial response is stored, and the request needs more of it.
  case partial
}
