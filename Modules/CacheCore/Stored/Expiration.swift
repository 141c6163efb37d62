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
