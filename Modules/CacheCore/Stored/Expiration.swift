/// A store's own time to live, apart from HTTP freshness: what `.cacheFirst` goes by.
///
/// It counts from the moment an answer was stored or confirmed by a 304, and never slides on reading: a sliding time to live
/// keeps a much shown picture stale for ever.
public enum Expiration: Hashable, Sendable {
  /// Until it is evicted or removed.
  case never
  /// So long after it was stored or last confirmed; zero or less: expired at once.
  case after(Duration)
  /// At that time.
  case at(Timestamp)

  /// The moment from which an entry that was stored (or confirmed) at `start` is a miss.
  public func deadline(from start: Timestamp) -> Timestamp {
    switch self {
    case .never: .distantFuture
    case .after(let duration): start + duration
    case .at(let time): time
    }
  }

  /// The one of two that ends earlier for an entry that was stored (or confirmed) at `start`.
  package static func earlier(_ a: Expiration?, _ b: Expiration?, from start: Timestamp) -> Expiration? {
    guard let a, let b else { return a ?? b }
    return a.deadline(from: start) <= b.deadline(from: start) ? a : b
  }
}
