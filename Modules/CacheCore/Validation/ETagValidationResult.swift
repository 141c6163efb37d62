/// How the origin was asked about a stored answer, and what it said.
public enum ETagValidationResult: String, Hashable, Sendable, CaseIterable {
  /// Nobody was asked: the stored answer was usable as it is, or nothing was stored.
  case none
  /// The origin confirmed the stored answer (304).
  case reused
  /// The origin sent a new answer in place of the stored one.
  case fresh
  /// Nobody answered, or the origin failed; the stored answer is shown though it may be outdated.
  case failed
}
