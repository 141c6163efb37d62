/// The use of partial responses (206). A stored one retains its status and `Content-Range`, and has its own variant, so it never
/// replaces the whole response.
public enum PartialResponses: String, Hashable, Sendable, CaseIterable {
  /// Returns partial responses without storing them.
  case ignored
  /// Stores partial responses and uses them for ranges inside them (RFC 9111 §3.3).
  case reused
  /// Stores and uses partial responses. A part that begins at the first byte is completed by requesting only the rest (§3.4). The
  /// cache must handle `ValidationVerdict.complete`.
  case completed
}
