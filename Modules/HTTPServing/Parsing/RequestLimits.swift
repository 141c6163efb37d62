#if Service
/// The sizes above which a request is refused. Bodies have no limit because they stream.
struct RequestLimits: Hashable, Sendable {
  /// The largest target, in bytes. A longer one gets 414.
  var targetBytes = 16 * 1024
  /// The largest request line with header section, or trailer section, in bytes. A longer section gets 431, and a longer request
  /// line 414.
  var headBytes = 64 * 1024
  /// The largest number of fields in a section. More get 431.
  var fieldCount = 256
  /// The longest chunk size with its extensions, in bytes (RFC 9112 §7.1.1 says that a recipient ought to limit them).
  var chunkLineBytes = 4 * 1024
}
#endif
