/// The freshness of a stored response, read from its fields by the validator when it is stored or updated.
///
/// A memory hit compares these times with the clock and does not read the fields again.
public struct Freshness: Hashable, Sendable {
  /// The time at which the origin generated the response, corrected for `Age` and for clock skew (RFC 9111 §4.2.3).
  public var generatedAt: Timestamp
  /// The end of the freshness lifetime (RFC 9111 §4.2).
  public var freshUntil: Timestamp
  /// Whether every use needs a successful revalidation (`no-cache`, RFC 9111 §5.2.2.4).
  public var requiresRevalidation: Bool
  /// The time until which a stale response may be used while it is revalidated (`stale-while-revalidate`, RFC 5861 §3), or `nil`
  /// if the response states none.
  public var staleWhileRevalidateUntil: Timestamp?
  /// The time until which a stale response may be used when the origin cannot be reached (RFC 9111 §4.2.4), or `nil` if that is
  /// forbidden (`must-revalidate`, `no-cache`).
  public var staleIfErrorUntil: Timestamp?

  /// Creates the freshness of a response.
  public init(
    generatedAt: Timestamp, freshUntil: Timestamp, requiresRevalidation: Bool = false,
    staleWhileRevalidateUntil: Timestamp? = nil, staleIfErrorUntil: Timestamp? = .distantFuture
  ) {
    self.generatedAt = generatedAt
    self.freshUntil = freshUntil
    self.requiresRevalidation = requiresRevalidation
    self.staleWhileRevalidateUntil = staleWhileRevalidateUntil
    self.staleIfErrorUntil = staleIfErrorUntil
  }

  /// Returns whether the response may be used at `now` without revalidation.
  public func isFresh(at now: Timestamp) -> Bool { !requiresRevalidation && now < freshUntil }

  /// Returns the response's age at `now`, which is never negative (RFC 9111 §4.2.3).
  public func age(at now: Timestamp) -> Duration { max(.zero, now - generatedAt) }

  /// Returns the freshness after a soft purge at `now`: the response is stale, and `stale-while-revalidate` counts from `now`.
  public func markedStale(at now: Timestamp) -> Freshness {
    guard now < freshUntil else { return self }
    var stale = self
    guard !isUnvalidated else {
      // Without a validator, the response cannot be revalidated.
      stale.requiresRevalidation = true
      return stale
    }
    stale.freshUntil = now
    stale.staleWhileRevalidateUntil = staleWhileRevalidateUntil.map { now + ($0 - freshUntil) }
    return stale
  }
}

extension Freshness {
  /// The end of a lifetime that no validator has read. No lifetime that a validator reads ends at exactly this time.
  private static let unvalidated = Timestamp.distantFuture - .nanoseconds(1)

  /// Returns the freshness of a response that was stored without a validator, so that only its time to live limits its use.
  package static func unvalidated(at now: Timestamp) -> Freshness { Freshness(generatedAt: now, freshUntil: unvalidated) }

  /// Whether the response was stored without a validator. Its fields may forbid that other requests use it.
  package var isUnvalidated: Bool { freshUntil == Self.unvalidated }
}
