#if Origin
/// The method that marks the end of a body (RFC 9112 §6).
public enum OriginFraming: Sendable, Hashable {
  /// `Content-Length` with the actual length.
  case contentLength
  /// `Content-Length` with the given length in bytes, which may be false. The connection is closed after a body of another
  /// length. If the body is longer, all of it is sent.
  case claimedLength(Int)
  /// `Transfer-Encoding: chunked`, in chunks of the given size in bytes (at least 1). For an HTTP/1.0 client it is `untilClose`.
  case chunked(of: Int = 16_384)
  /// Neither of both: the body ends with the connection.
  case untilClose
}
#endif
