#if Gateway
/// How much of a request is read before it is refused. Bodies have no limit: they stream.
struct RequestLimits: Hashable, Sendable {
  /// Bytes of the target; more are answered 414.
  var targetBytes = 16 * 1024
  /// Bytes of request line and header section together, or of a trailer section; more are answered 431.
  var headBytes = 64 * 1024
  /// Fields of a section; more are answered 431.
  var fieldCount = 256
  /// Bytes of a chunk's size with its extensions (RFC 9112 §7.1.1: a recipient ought to limit them).
  var chunkLineBytes = 4 * 1024
}
#endif
