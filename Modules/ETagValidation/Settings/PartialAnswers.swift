/// What becomes of parts (206): `StoredMetadata` keeps such an answer's status and `Content-Range`, and its variant is one of its
/// own, so that a part never takes the whole answer's place.
public enum PartialAnswers: String, Hashable, Sendable, CaseIterable {
  /// They are handed on and not stored.
  case ignored
  /// Stored, and used for ranges that lie inside them (RFC 9111 §3.3).
  case reused
  /// Stored and used; one that begins at the first byte is made whole by asking for the rest only (§3.4). For a cache that
  /// carries out `ValidationVerdict.complete`.
  case completed
}
