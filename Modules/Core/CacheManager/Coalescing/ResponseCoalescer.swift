internal import CacheCore
internal import HTTPTypes

/// The requests of a manager that wait for an origin's response, and that equal requests may join. Equal requests are collapsed
/// into one (RFC 9111 §4).
final class ResponseCoalescer: Sendable {
  /// The role of a request in coalescing.
  enum Role {
    /// The request is sent to the origin, and passes the outcome on to the waiting requests.
    ///
    /// - Parameter mayWaitForLease: Whether it may wait for another process. It may not if an equal request of this process may
    ///   have the lease.
    case leading(CoalescingLeader, mayWaitForLease: Bool)
    /// The request waits for another request.
    ///
    /// - Parameter isEarly: Whether the request arrived before the other request got its response.
    case following(PendingRequest, isEarly: Bool)
    /// The request is sent to the origin, and no other request waits for it.
    case alone
    /// The response to an equal request was stored, or may have been stored, after this request looked it up in the stores.
    ///
    /// - Parameter coalescedResponse: That response if it is not fresh and this request arrived before it, otherwise `nil`.
    case late(_ coalescedResponse: PendingRequest.CoalescedResponse?)
  }

  /// A request that other requests may join.
  private struct Open {
    let request: PendingRequest
    /// The freshness of the response, and the value of ``State/count`` when the response arrived. `nil` if the request is still
    /// waiting for a response.
    var response: (count: Int, freshness: Freshness)?
    /// Whether other requests can no longer join, because the first bytes of the body are no longer held.
    var isClosed = false

    /// Whether a request that arrived at `count` arrived before the response.
    func isEarly(_ count: Int) -> Bool { response.map { count < $0.count } ?? true }
  }

  /// A request whose response was stored. Digests replace its key, because a key contains credentials.
  private struct Ended {
    let hash: Int
    let digest: Int
    /// The value of ``State/count`` when the request got its response.
    let respondedAt: Int
    /// The value of ``State/count`` when the response was stored.
    let stored: Int
    let coalescedResponse: PendingRequest.CoalescedResponse
  }

  private struct State {
    var open: [CoalescingKey: Open] = [:]
    /// The marks of requests whose responses other requests cannot use. Until the uptime of its mark, such requests do
    /// not wait for each other. The keys are hashes, because a ``CoalescingKey`` contains credentials.
    var marks = RequestMarks()
    /// The latest requests whose responses were stored, the oldest first.
    var ended: [Ended] = []
    /// The values of ``count`` when responses were last stored, by the hashes of their requests. They include the requests that
    /// ``ended`` has forgotten.
    var stored = RecentPositions()
    /// The number of responses that arrived, plus the number of those that were stored.
    var count = 0
  }

  /// The time for which requests do not wait for each other after one of them could not use the response to another. Without it,
  /// such requests would wait in vain one after the other.
  static let markLifetime = Duration.seconds(120)
  /// The maximum number of marked requests.
  static let markLimit = 4_096
  /// The number of ended requests to remember.
  private static let memory = 64

  private let state = Lock(State())

  /// A number that increases when a response arrives and when one is stored. A request reads it on arrival, before it looks into
  /// the stores.
  var count: Int { state.withLock { $0.count } }

  /// Decides the role of a request that no stored response satisfies.
  ///
  /// - Parameters:
  ///   - key: The key that is equal for requests that may share one response.
  ///   - count: The value of ``count`` when the request arrived.
  ///   - isRepeated: Whether the request has looked into the stores again because it was late. If it may be late once more, it
  ///     relies on its lookup. Otherwise requests would not wait for each other while a slow store stores many responses.
  ///   - mayLead: Whether other requests may be able to use its response.
  ///   - cache: The view of the stores that the request has looked into.
  func assignRole(
    _ key: CoalescingKey, since count: Int, isRepeated: Bool, mayLead: Bool, _ cache: TieredCache
  ) -> Role {
    let load = cache.request
    let (now, uptime) = (load.clock.now, load.clock.uptime)
    // The former request is released outside the lock, with its key. It may be the last reference to a caller's object.
    let (role, _) = state.withLock { state -> (Role, former: Dictionary<CoalescingKey, Open>.Element?) in
      // A response that was requested before a purge is not for a request that arrives after it.
      let open = state.open[key]
      if let open, !open.isClosed, !load.invalidations.mayHaveMatched(cache.resource, since: open.request.logPosition) {
        let isEarly = open.isEarly(count)
        // Otherwise this request is sent to the origin, and later requests may wait for it.
        if isEarly || open.response?.freshness.isFresh(at: now) == true {
          open.request.expectFollower()
          return (.following(open.request, isEarly: isEarly), nil)
        }
      }
      if let late = Self.late(key, since: count, isRepeated: isRepeated, state, now) { return (late, nil) }
      guard mayLead else { return (.alone, nil) }
      // Two requests for one response are a sign of more to come.
      let request = PendingRequest(cache, isPopular: open?.isClosed == true)
      // Requests do not wait for a marked one. Its outcome removes or renews the mark.
      var former: Dictionary<CoalescingKey, Open>.Element?
      if !state.marks.contains(key, at: uptime) {
        // An assignment would keep the key of the former request.
        former = state.open.index(forKey: key).map { state.open.remove(at: $0) }
        state.open[key] = Open(request: request)
      }
      return (
        .leading(CoalescingLeader(request, key, self, load.clock), mayWaitForLease: open?.isClosed != true), former
      )
    }
    return role
  }

  /// Returns ``Role/late(_:)`` if the response to an equal request was stored since the request arrived, otherwise `nil`.
  private static func late(
    _ key: CoalescingKey, since count: Int, isRepeated: Bool, _ state: State, _ now: Timestamp
  ) -> Role? {
    let hash = key.hashValue
    guard state.stored.latest(for: hash) > count else { return nil }
    for ended in state.ended.reversed() where ended.stored > count && ended.hash == hash {
      // The stores contain a fresh response, so it need not be passed on.
      let isWanted = ended.respondedAt > count && !ended.coalescedResponse.candidate.metadata.freshness.isFresh(at: now)
      return .late(isWanted && ended.digest == key.digest ? ended.coalescedResponse : nil)
    }
    // The request that was stored has been forgotten, or its hash is equal to that of this one.
    return isRepeated ? nil : .late(nil)
  }

  /// Records that the request got its response. A request that arrives after this may use the response only if it is fresh.
  func responseArrived(_ request: PendingRequest, _ key: CoalescingKey, _ freshness: Freshness) {
    state.withLock { state in
      guard state.open[key]?.request === request else { return }
      state.count += 1
      state.open[key]?.response = (state.count, freshness)
    }
  }

  /// Stops other requests from joining this one, while its response is still arriving. The next equal request is sent.
  ///
  /// - Parameter isPermitted: Returns whether to do so.
  /// - Returns: Whether no request can join any more.
  func close(_ request: PendingRequest, _ key: CoalescingKey, if isPermitted: (PendingRequest) -> Bool) -> Bool {
    state.withLock { state in
      // Under the lock, so that no request decides to follow at the same time.
      guard isPermitted(request) else { return false }
      if state.open[key]?.request === request { state.open[key]?.isClosed = true }
      return true
    }
  }

  /// Stops other requests from joining this one.
  ///
  /// - Parameter coalescedResponse: The response if it is stored, otherwise `nil`.
  func end(_ request: PendingRequest, _ key: CoalescingKey, storing coalescedResponse: PendingRequest.CoalescedResponse?) {
    let hash = key.hashValue
    // The forgotten request is released outside the lock.
    _ = state.withLock { state -> Ended? in
      // A request that was closed to others stores its response all the same.
      let open = state.open[key].flatMap { $0.request === request ? $0 : nil }
      if open != nil { state.open[key] = nil }
      guard let coalescedResponse else { return nil }
      let forgotten = state.ended.count == Self.memory ? state.ended.removeFirst() : nil
      state.count += 1
      state.stored.note(hash, state.count)
      state.ended.append(
        Ended(
          hash: hash, digest: key.digest, respondedAt: open?.response?.count ?? 0, stored: state.count,
          coalescedResponse: coalescedResponse))
      return forgotten
    }
  }

  /// - Parameter uptime: The current uptime. A mark that ended at a wall-clock time would outlive its time if the clock was set
  ///   back.
  func mark(_ key: CoalescingKey, at uptime: Duration) { state.withLock { $0.marks.insert(key, at: uptime) } }

  func unmark(_ key: CoalescingKey) { state.withLock { $0.marks.remove(key) } }
}

/// Requests that share nothing for some time. They are listed by hash, because a ``CoalescingKey`` contains credentials.
struct RequestMarks: Sendable {
  private var ends: [Int: Duration] = [:]

  func contains(_ key: CoalescingKey, at uptime: Duration) -> Bool { ends[key.markHash].map { uptime < $0 } ?? false }

  mutating func insert(_ key: CoalescingKey, at uptime: Duration) {
    if ends.count >= ResponseCoalescer.markLimit { ends = ends.filter { uptime < $0.value } }
    // No mark has expired. All are removed, because a wait or a request in vain costs less than an unlimited table.
    if ends.count >= ResponseCoalescer.markLimit { ends = [:] }
    ends[key.markHash] = uptime + ResponseCoalescer.markLifetime
  }

  mutating func remove(_ key: CoalescingKey) { ends[key.markHash] = nil }
}

/// A request to the origin that equal requests wait for (RFC 9111 §4).
final class PendingRequest: Sendable {
  /// A stored response that a pending request has obtained.
  struct CoalescedResponse: Sendable {
    var candidate: Candidate
    /// The status that the origin sent if it was a 304, otherwise `nil`.
    var status: Int?
    /// The position of the ``InvalidationLog`` when the request began.
    var logPosition: Int
    /// The digest of the request's fields if only requests with equal fields may use the response, otherwise `nil`.
    var fields: Int?

    /// Whether the fields of a request allow it to use the response, which has not been planned for that request yet.
    func isShareable(with request: HTTPRequest) -> Bool { fields.map { $0 == request.comparedFields.hashValue } ?? true }
  }

  /// The outcome that each waiting request receives once, as soon as it is known.
  enum Outcome: Sendable {
    /// The response is being stored, and can be read while it arrives.
    case growing(Candidate, SharedBody)
    /// The response is stored.
    ///
    /// - Parameter status: The origin's own status if it was a 304, otherwise `nil`.
    case stored(Candidate, status: Int?)
    /// The response is for the leader alone, or there is no response. Each waiting request is sent to the origin itself.
    case unshared(Result<HTTPResponse, CacheError>)
    /// The leader left. One of the waiting requests is sent instead.
    case abandoned
  }

  private let outcome = OneShotBroadcast<Outcome>()
  /// The number of requests that have ever followed this one, and of those that have neither joined its body nor left.
  private let followers = Lock((all: 0, unsettled: 0))
  /// Whether this request was sent because the body of an equal one could no longer be joined.
  private let isPopular: Bool
  /// The position of the ``InvalidationLog`` when the request began.
  let logPosition: Int

  /// The identifier of the load that sends the request.
  let load: LoadID
  private let head: HTTPRequest

  /// - Parameters:
  ///   - cache: The view of the stores that the request has looked into.
  ///   - isPopular: Whether further requests are likely to join the body.
  init(_ cache: TieredCache, isPopular: Bool) {
    self.isPopular = isPopular
    logPosition = cache.logPosition
    load = cache.request.id
    head = cache.request.head
  }

  /// Returns the response in the form that other requests receive.
  func coalescedResponse(_ candidate: Candidate, status: Int?) -> CoalescedResponse {
    CoalescedResponse(
      candidate: candidate, status: status, logPosition: logPosition,
      fields: candidate.metadata.wasFresh ? nil : head.comparedFields.hashValue)
  }

  /// Whether requests are about to join the body, or are likely to.
  var expectsFollowers: Bool { isPopular || followers.withLock { $0.unsettled > 0 } }

  /// Whether another request has ever followed this one.
  var isFollowed: Bool { followers.withLock { $0.all > 0 } }

  func expectFollower() { followers.withLock { ($0.all, $0.unsettled) = ($0.all + 1, $0.unsettled + 1) } }

  /// Records that a follower has joined the body, or has left. It must be called once for each ``expectFollower()``.
  func followerSettled() { followers.withLock { $0.unsettled -= 1 } }

  func tell(_ outcome: Outcome) { self.outcome.make(outcome) }

  /// Waits for the outcome. Returns `nil` if it is not known within `limit`, or if the waiting task is cancelled.
  func outcome(within limit: Duration, by clock: any CacheClock) async -> Outcome? {
    if let outcome = outcome.value { return outcome }
    return await outcome.value(within: limit, by: clock)
  }
}

extension HTTPRequest {
  /// The fields in which requests must be equal to share a response that may be reused for no other request.
  ///
  /// These are all fields except for those that this cache evaluates itself for each request: conditions and `Cache-Control`.
  /// Fields about the connection and about tracing count too, because an origin can respond to them.
  var comparedFields: HTTPFields {
    headerFields.filter { $0.name != .cacheControl && !ConfidentialFields.conditions.contains($0.name) }
  }
}

/// The duty of the leading request to pass its outcome on to the waiting requests. If the leader is released without an outcome,
/// the waiting requests learn that the request was abandoned, so no request waits in vain.
final class CoalescingLeader: Sendable {
  let request: PendingRequest
  private let key: CoalescingKey
  private let table: ResponseCoalescer
  private let clock: any CacheClock
  private let ending = Lock(false)

  init(_ request: PendingRequest, _ key: CoalescingKey, _ table: ResponseCoalescer, _ clock: any CacheClock) {
    self.request = request
    self.key = key
    self.table = table
    self.clock = clock
  }

  deinit { abandon() }

  /// Records the freshness of a response whose head has arrived. The response is stored, or it confirms a stored response.
  func responseArrived(_ freshness: Freshness) { table.responseArrived(request, key, freshness) }

  /// Tells the waiting requests that the response is being stored. Requests can join until it is complete, which
  /// ``stored(_:status:)`` reports.
  func grows(as candidate: Candidate, in body: SharedBody) {
    table.unmark(key)
    request.tell(.growing(candidate, body))
  }

  /// Stops requests from joining the body, unless some are about to join, or are likely to.
  ///
  /// - Returns: Whether no request can join any more.
  func closeIfUnawaited() -> Bool { table.close(request, key) { !$0.expectsFollowers } }

  /// Stops requests from joining the body, unless one has ever followed this one.
  ///
  /// - Returns: Whether no other request has followed this one, and none will.
  func closeIfAlone() -> Bool { table.close(request, key) { !$0.isFollowed } }

  /// Stops requests from joining the body.
  func close() { _ = table.close(request, key) { _ in true } }

  /// Tells the waiting requests that the response is stored. Does nothing if they were told that they cannot use it. Storing the
  /// response for later requests that revalidate it does not change that.
  func stored(_ candidate: Candidate, status: Int?) {
    guard end() else { return }
    table.unmark(key)
    var stripped = candidate
    // The stores have the bytes, so the coalescer does not hold them.
    stripped.data = nil
    table.end(request, key, storing: request.coalescedResponse(stripped, status: status))
    request.tell(.stored(candidate, status: status))
  }

  /// Tells the waiting requests that they cannot use the response.
  ///
  /// - Parameter isTypical: Whether the origin usually responds in this way. Equal requests then do not wait for each other for a
  ///   while.
  func endWithoutSharing(_ result: Result<HTTPResponse, CacheError>, isTypical: Bool) {
    guard end() else { return }
    if isTypical { table.mark(key, at: clock.uptime) }
    table.end(request, key, storing: nil)
    request.tell(.unshared(result))
  }

  func abandon() {
    guard end() else { return }
    table.end(request, key, storing: nil)
    request.tell(.abandoned)
  }

  /// Marks the leader as ended. Returns `false` if it was ended before.
  private func end() -> Bool {
    ending.withLock { isOver in
      defer { isOver = true }
      return !isOver
    }
  }
}
