internal import CacheCore

/// The requests of a manager that are on their way to an origin, and that equal requests may join. Equal requests are collapsed
/// into one (RFC 9111 §4).
final class ResponseCoalescer: Sendable {
  /// The role of a request in coalescing.
  enum Place {
    /// The request is sent to the origin, and tells the waiting requests the outcome.
    case leading(CoalescingLeader)
    /// The request waits for another request.
    ///
    /// - Parameter isEarly: Whether it arrived before the other request got its response.
    case following(PendingRequest, isEarly: Bool)
    /// The request is sent to the origin, and no other request waits for it.
    case alone
    /// The response to an equal request was stored after this request looked into the stores.
    ///
    /// - Parameter brought: That response if it is not fresh and this request arrived before it, otherwise `nil`.
    case late(_ brought: PendingRequest.Brought?)
  }

  /// A request that other requests may join.
  private struct Open {
    let request: PendingRequest
    /// The freshness of the response, and the value of ``State/count`` when the response came. `nil` if the request still waits
    /// for a response.
    var response: (count: Int, freshness: Freshness)?

    /// Whether a request that arrived at `count` arrived before the response.
    func isEarly(_ count: Int) -> Bool { response.map { count < $0.count } ?? true }
  }

  /// A request whose response was stored. Digests replace its key, because a key contains credentials.
  private struct Ended {
    let hash: Int
    let digest: Int
    /// The value of ``State/count`` when the request got its response.
    let answered: Int
    /// The value of ``State/count`` when the response was stored.
    let stored: Int
    let brought: PendingRequest.Brought
  }

  private struct State {
    var open: [CoalescingKey: Open] = [:]
    /// The hashes of requests whose responses other requests cannot use. The value is the time until which such requests do not
    /// wait for each other. The keys are hashes, because a ``CoalescingKey`` contains credentials.
    var marks: [Int: Timestamp] = [:]
    /// The latest requests whose responses were stored, the oldest first.
    var ended: [Ended] = []
    /// The number of responses that came, plus the number of those that were stored.
    var count = 0
  }

  /// The time for which requests do not wait for each other after one could not use the response to another. Without it, such
  /// requests would wait in vain one after the other.
  static let markLifetime = Duration.seconds(120)
  /// The maximum number of marked requests.
  static let markLimit = 4_096
  /// The maximum number of ended requests that are remembered.
  private static let memory = 64

  private let state = Lock(State())

  /// A number that grows when a response comes and when one is stored. A request reads it on arrival, before it looks into the
  /// stores.
  var count: Int { state.withLock { $0.count } }

  /// Decides whether a request that no stored response satisfies leads, follows or is sent alone.
  ///
  /// - Parameters:
  ///   - key: The key that is equal for requests that may share one response.
  ///   - count: The value of ``count`` when the request arrived.
  ///   - mayLead: Whether other requests may be able to use its response.
  ///   - cache: The view of the stores that the request has looked into.
  func place(_ key: CoalescingKey, since count: Int, mayLead: Bool, _ cache: TieredCache) -> Place {
    let (load, hash) = (cache.request, key.hashValue)
    let now = load.clock.now
    return state.withLock { state in
      // A response that was requested before a purge is not for a request that comes after it.
      if let open = state.open[key], !load.invalidations.mayHaveMet(cache.resource, since: open.request.logPosition) {
        let isEarly = open.isEarly(count)
        // Otherwise this request is sent, and the requests after it may wait for it.
        if isEarly || open.response?.freshness.isFresh(at: now) == true { return .following(open.request, isEarly: isEarly) }
      }
      if let late = Self.late(key, since: count, state, now) { return late }
      guard mayLead else { return .alone }
      let request = PendingRequest(cache)
      // No request waits for a marked one. Its outcome ends the mark or renews it.
      if state.marks[hash].map({ $0 <= now }) ?? true { state.open[key] = Open(request: request) }
      return .leading(CoalescingLeader(request, key, self, load.clock))
    }
  }

  /// Returns ``Place/late(_:)`` if the response to an equal request was stored since the request arrived, otherwise `nil`.
  private static func late(_ key: CoalescingKey, since count: Int, _ state: State, _ now: Timestamp) -> Place? {
    let hash = key.hashValue
    for ended in state.ended.reversed() {
      guard ended.stored > count else { return nil }
      guard ended.hash == hash else { continue }
      // A fresh response is found in the stores, so it need not be passed on.
      let isWanted = ended.answered > count && !ended.brought.candidate.metadata.freshness.isFresh(at: now)
      return .late(isWanted && ended.digest == key.digest ? ended.brought : nil)
    }
    // Older requests whose responses were stored since then may be forgotten.
    return state.ended.count == memory ? .late(nil) : nil
  }

  /// Records that the request got its response. A request that arrives from now on may use the response only if it is fresh.
  func answered(_ request: PendingRequest, _ key: CoalescingKey, _ freshness: Freshness) {
    state.withLock { state in
      guard state.open[key]?.request === request else { return }
      state.count += 1
      state.open[key]?.response = (state.count, freshness)
    }
  }

  /// Stops requests from joining this one.
  ///
  /// - Parameter brought: The response if it is stored, otherwise `nil`.
  func end(_ request: PendingRequest, _ key: CoalescingKey, bringing brought: PendingRequest.Brought?) {
    // The forgotten request is released outside the lock.
    _ = state.withLock { state -> Ended? in
      guard let open = state.open[key], open.request === request else { return nil }
      state.open[key] = nil
      guard let brought else { return nil }
      let forgotten = state.ended.count == Self.memory ? state.ended.removeFirst() : nil
      state.count += 1
      state.ended.append(
        Ended(
          hash: key.hashValue, digest: key.digest, answered: open.response?.count ?? 0, stored: state.count, brought: brought))
      return forgotten
    }
  }

  func mark(_ key: CoalescingKey, at now: Timestamp) {
    let hash = key.hashValue
    state.withLock { state in
      if state.marks.count >= Self.markLimit { state.marks = state.marks.filter { now < $0.value } }
      // No mark has expired. All are removed, because a wait in vain costs less than a table without a limit.
      if state.marks.count >= Self.markLimit { state.marks = [:] }
      state.marks[hash] = now + Self.markLifetime
    }
  }

  func unmark(_ key: CoalescingKey) {
    let hash = key.hashValue
    state.withLock { _ = $0.marks.removeValue(forKey: hash) }
  }
}
