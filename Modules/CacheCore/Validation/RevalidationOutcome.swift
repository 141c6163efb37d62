/// The result of asking the origin about a stored response.
public enum RevalidationOutcome: String, Hashable, Sendable, CaseIterable {
  /// The origin was not asked. The stored response could be used as it is, or no response was stored.
  case notAttempted
  /// The origin confirmed the stored response (304).
  case notModified
  /// The origin sent a new response in place of the stored one.
  case modified
  /// The origin did not respond or reported a server error. The stored response is used although it may be outdated.
  case failed
}
