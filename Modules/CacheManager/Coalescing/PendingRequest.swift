internal import CacheCore
internal import HTTPTypes

/// A request on its way to the origin, which equal requests wait for (RFC 9111 §4).
final class PendingRequest: Sendable {
  /// A stored response that a pending request has obtained.
  struct Brought: Sendable {
    var candidate: Candidate
    /// The status that the origin sent if it was a 304, otherwise `nil`.
    var status: Int?
    /// The position of the ``InvalidationLog`` when the request began.
    var logPosition: Int
    /// The digest of the request's cookies.
    var cookies: Int
  }

  /// The outcome that the waiting requests receive once, as soon as it is known.
  enum Outcome: Sendable {
    /// The response is being stored, and can be read while it arrives.
    case growing(Candidate, SharedBody)
    /// The response is stored.
    ///
    /// - Parameter status: The origin's own status if it was a 304, otherwise `nil`.
    case stored(Candidate, status: Int?)
    /// The response is for the leader alone, or there is none. Each waiting request is sent to the origin itself.
    case unshared(Result<HTTPResponse, CacheError>)
    /// The leader left. One of the waiting requests is sent in its place.
    case abandoned
  }

  private let outcome = OneShotBroadcast<Outcome>()
  private let lastWaiter = Lock(0)
  /// The position of the ``InvalidationLog`` when the request began.
  let logPosition: Int

  /// The identifier of the load that sends the request.
  let load: LoadID
  private let cookies: Int

  /// - Parameter cache: The view of the stores that the request has looked into.
  init(_ cache: TieredCache) {
    logPosition = cache.logPosition
    load = cache.request.id
    cookies = Self.cookies(of: cache.request.head)
  }

  /// The digest of the cookies of a request, which shows whether two requests have equal cookies.
  static func cookies(of request: HTTPRequest) -> Int { request.headerFields[values: .cookie].hashValue }

  /// The response as other requests receive it.
  func brought(_ candidate: Candidate, status: Int?) -> Brought {
    Brought(candidate: candidate, status: status, logPosition: logPosition, cookies: cookies)
  }

  func tell(_ outcome: Outcome) { self.outcome.make(outcome) }

  /// Waits for the outcome. Returns `nil` if it is not known within `limit`, or if the waiting task was cancelled.
  func outcome(within limit: Duration, by clock: any CacheClock) async -> Outcome? {
    if let outcome = outcome.value { return outcome }
    let id = lastWaiter.withLock { last in
      last += 1
      return last
    }
    return await outcome.value(for: id, within: limit, by: clock)
  }
}
