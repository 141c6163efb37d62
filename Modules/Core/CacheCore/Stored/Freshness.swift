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

/// A store's own time to live, which is independent of HTTP freshness. The policy ``LoadPolicy/cacheFirst`` uses it.
///
/// It starts when a response is stored or confirmed by a 304. Reading does not extend it, because an entry that is read often
/// would otherwise stay stale forever.
public enum Expiration: Hashable, Sendable {
  /// The entry remains until it is evicted or removed.
  case never
  /// The entry expires this long after it was stored or last confirmed. With zero or less it expires at once.
  case after(Duration)
  /// The entry expires at this time.
  case at(Timestamp)

  /// Returns the time from which an entry that was stored or confirmed at `start` is a miss.
  public func deadline(from start: Timestamp) -> Timestamp {
    switch self {
    case .never: .distantFuture
    case .after(let duration): start + duration
    case .at(let time): time
    }
  }

  /// Returns the earlier of two expirations for an entry that was stored or confirmed at `start`.
  package static func earlier(_ a: Expiration?, _ b: Expiration?, from start: Timestamp) -> Expiration? {
    guard let a, let b else { return a ?? b }
    return a.deadline(from: start) <= b.deadline(from: start) ? a : b
  }
}
