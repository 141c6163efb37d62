#if Origin
  /// How the client can tell where the body ends (RFC 9112 §6).
  public enum OriginFraming: Sendable, Hashable {
    /// `Content-Length` with the true length.
    case contentLength
    /// `Content-Length` with a length of the test's own, in bytes. When more was promised than there is, the connection is closed after the
    /// body; when less, the surplus follows all the same and spoils the connection, so it is closed too.
    case claimedLength(Int)
    /// `Transfer-Encoding: chunked`, no length, in chunks of so many bytes (at least 1). To an HTTP/1.0 client it is `untilClose`.
    case chunked(of: Int = 16_384)
    /// Neither: the body ends where the connection does.
    case untilClose
  }
#endif
