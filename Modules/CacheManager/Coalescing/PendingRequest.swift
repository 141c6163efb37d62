internal import CacheCore
internal import HTTPTypes

/// A request on its way to the origin, which equal ones wait for (RFC 9111 §4).
final class PendingRequest: Sendable {
  /// A stored response that a request has brought.
  struct Brought: Sendable {
    var candidate: Candidate
    /// The status that the origin sent, where it was a 304.
    var status: Int?
    /// What had been removed when the request was begun: see ``InvalidationLog``.
    var logPosition: Int
    /// The digest of the request's cookies.
    var cookies: Int
  }

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

  private let outcome = OneShotBroadcast<Outcome>()
  private let lastWaiter = Lock(0)
  /// What had been removed when the request was begun: see ``InvalidationLog``.
  let logPosition: Int

  private let cookies: Int

  /// - Parameter cache: where the request has looked.
  init(_ cache: TieredCache) {
    logPosition = cache.logPosition
    cookies = Self.cookies(of: cache.request.head)
  }

  /// A digest of the cookies of a request, which tells whether two requests have equal ones.
  static func cookies(of request: HTTPRequest) -> Int { request.headerFields[values: .cookie].hashValue }

  /// The response, as other requests get it.
  func brought(_ candidate: Candidate, status: Int?) -> Brought {
    Brought(candidate: candidate, status: status, logPosition: logPosition, cookies: cookies)
  }

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
