/// The outcome of revalidating a stored response.
public enum RevalidationOutcome: String, Hashable, Sendable, CaseIterable {
  /// No revalidation was needed: the stored response was usable, or no response was stored.
  case notAttempted
  /// The origin confirmed the stored response (304).
  case notModified
  /// The origin sent a new response, which replaces the stored one.
  case modified
  /// The origin did not respond or returned a server error. The stored response is used although it may be outdated.
  case failed
}
