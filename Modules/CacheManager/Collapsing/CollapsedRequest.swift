internal import CacheCore
internal import HTTPTypes

/// A request on its way to the origin, which equal ones wait for (RFC 9111 §4).
final class CollapsedRequest: Sendable {
  /// What those who wait are told, once: as soon as it is known.
  enum Outcome: Sendable {
    /// The answer is being stored, and may be read as it comes.
    case growing(Candidate, SharedBody)
    /// The answer is stored.
    ///
    /// - Parameter status: the origin's own, where it was a 304.
    case stored(Candidate, status: Int?)
    /// What came is nobody else's, or nothing came: each asks for itself.
    case unshared(Result<HTTPResponse, CacheError>)
    /// Who asked has left: one of the others asks.
    case abandoned
  }

  private let outcome = Announcement<Outcome>()
  private let lastWaiter = Lock(0)
  /// What had been removed when the request was begun: see ``RemovalEpoch``.
  let epoch: Int

  init(epoch: Int) { self.epoch = epoch }

  func tell(_ outcome: Outcome) { self.outcome.make(outcome) }

  /// What comes of it. Nil: that is not known within `limit`, or who waits was cancelled.
  func outcome(within limit: Duration, by clock: any CacheClock) async -> Outcome? {
    if let outcome = outcome.value { return outcome }
    let id = lastWaiter.withLock { last in
      last += 1
      return last
    }
    return await outcome.value(for: id, within: limit, by: clock)
  }
}
