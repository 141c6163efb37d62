/// What a hit needs to know, parsed once by the validator when an answer is stored or freshened.
///
/// A synchronous memory hit is two look-ups and two comparisons with these; headers are not read again.
public struct CachingFacts: Hashable, Sendable {
  /// When the answer was made at the origin, corrected for `Age` and for clock skew (RFC 9111 §4.2.3): its age is `now - bornAt`.
  public var bornAt: Timestamp
  /// Fresh while `now` is before this (RFC 9111 §4.2).
  public var freshUntil: Timestamp
  /// Must be asked about before every use, however fresh (`no-cache`, RFC 9111 §5.2.2.4).
  public var alwaysAsk: Bool
  /// May be shown stale, while it is revalidated, until then (`stale-while-revalidate`, RFC 5861 §3); nil: not stated.
  public var servesStaleUntil: Timestamp?
  /// May be shown stale, when nobody can be asked, until then (RFC 9111 §4.2.4); nil: forbidden (`must-revalidate`, `no-cache`).
  public var servesOfflineUntil: Timestamp?

  /// Facts as a validator states them.
  public init(
    bornAt: Timestamp, freshUntil: Timestamp, alwaysAsk: Bool = false, servesStaleUntil: Timestamp? = nil,
    servesOfflineUntil: Timestamp? = .distantFuture
  ) {
    self.bornAt = bornAt
    self.freshUntil = freshUntil
    self.alwaysAsk = alwaysAsk
    self.servesStaleUntil = servesStaleUntil
    self.servesOfflineUntil = servesOfflineUntil
  }

  /// Whether the answer may be used at `now` without asking anybody.
  public func isFresh(at now: Timestamp) -> Bool { !alwaysAsk && now < freshUntil }

  /// The answer's age at `now`, never negative (RFC 9111 §4.2.3).
  public func age(at now: Timestamp) -> Duration { max(.zero, now - bornAt) }

  /// The facts of the same answer, made stale at `now` (a soft purge): the next use asks about it, and for as long as its own directives allowed behind its
  /// lifetime it may still be shown meanwhile.
  public func markedStale(at now: Timestamp) -> CachingFacts {
    guard now < freshUntil else { return self }
    var facts = self
    facts.freshUntil = now
    facts.servesStaleUntil = servesStaleUntil.map { now + ($0 - freshUntil) }
    return facts
  }
}
