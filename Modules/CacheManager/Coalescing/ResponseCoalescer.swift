internal import CacheCore

/// The requests of a manager that are on their way to an origin and may be joined: equal ones are collapsed into one (RFC 9111
/// §4).
final class ResponseCoalescer: Sendable {
  /// What becomes of a request.
  enum Place {
    /// It is the first: it asks, and tells.
    case leading(CoalescingLeader)
    /// It waits for another request.
    ///
    /// - Parameter isEarly: whether it arrived before that request got its response.
    case following(PendingRequest, isEarly: Bool)
    /// It asks for itself, and nobody waits for it.
    case alone
    /// The response to an equal request was stored since it looked into the stores.
    ///
    /// - Parameter brought: that response, where it is not fresh and this request arrived before it.
    case late(_ brought: PendingRequest.Brought?)
  }

  /// A request that may be joined.
  private struct Open {
    let request: PendingRequest
    /// What is known of its response, and the value of ``State/count`` when that came; nil: it waits for one.
    var response: (count: Int, freshness: Freshness)?

    /// Whether a request that arrived at `count` arrived before the response.
    func isEarly(_ count: Int) -> Bool { response.map { count < $0.count } ?? true }
  }

  /// A request whose response was stored. Digests stand for its key, since a key has credentials.
  private struct Ended {
    let hash: Int
    let digest: Int
    /// The value of ``State/count`` when it got its response.
    let answered: Int
    /// The value of ``State/count`` when the response was stored.
    let stored: Int
    let brought: PendingRequest.Brought
  }

  private struct State {
    var open: [CoalescingKey: Open] = [:]
    /// Hashes of requests whose answers others can't use, with the time until which they don't wait for each other. A hash, since
    /// a key has credentials.
    var marks: [Int: Timestamp] = [:]
    /// The latest requests whose responses were stored, the oldest first.
    var ended: [Ended] = []
    /// The number of responses that came, and of those that were stored since.
    var count = 0
  }

  /// How long requests don't wait for each other after the answer to one was of no use to another. Without that they would wait
  /// in vain, one time after the other.
  static let markLifetime = Duration.seconds(120)
  /// How many requests are marked at most.
  static let markLimit = 4_096
  /// How many of the requests that have ended are remembered.
  private static let memory = 64

  private let state = Lock(State())

  /// A number that grows with each response that comes, and with each that is stored. A request takes it when it arrives, before
  /// it looks into the stores.
  var count: Int { state.withLock { $0.count } }

  /// Finds the place of a request that can't be answered with what is stored.
  ///
  /// - Parameters:
  ///   - key: equal for requests that may get one answer.
  ///   - count: the value of ``count`` when the request arrived.
  ///   - mayLead: whether its answer may be one for others.
  ///   - cache: where it has looked.
  func place(_ key: CoalescingKey, since count: Int, mayLead: Bool, _ cache: TieredCache) -> Place {
    let (load, hash) = (cache.request, key.hashValue)
    let now = load.clock.now
    return state.withLock { state in
      // What was asked for before a purge is not for who comes after it.
      if let open = state.open[key], !load.invalidations.mayHaveMet(cache.resource, since: open.request.logPosition) {
        let isEarly = open.isEarly(count)
        // Else it asks anew, also for those that come after it.
        if isEarly || open.response?.freshness.isFresh(at: now) == true { return .following(open.request, isEarly: isEarly) }
      }
      if let late = Self.late(key, since: count, state, now) { return late }
      guard mayLead else { return .alone }
      let request = PendingRequest(cache)
      // Nobody waits for a marked one; but what comes of it ends the mark, or renews it.
      if state.marks[hash].map({ $0 <= now }) ?? true { state.open[key] = Open(request: request) }
      return .leading(CoalescingLeader(request, key, self, load.clock))
    }
  }

  /// The place of a request that finds the response to an equal one stored since it arrived; nil: there is no such response.
  private static func late(_ key: CoalescingKey, since count: Int, _ state: State, _ now: Timestamp) -> Place? {
    let hash = key.hashValue
    for ended in state.ended.reversed() {
      guard ended.stored > count else { return nil }
      guard ended.hash == hash else { continue }
      // A fresh response is found in the stores.
      let isWanted = ended.answered > count && !ended.brought.candidate.metadata.freshness.isFresh(at: now)
      return .late(isWanted && ended.digest == key.digest ? ended.brought : nil)
    }
    // Older ones that were stored since then may be forgotten.
    return state.ended.count == memory ? .late(nil) : nil
  }

  /// The request has got its response. A request that arrives from now on may use it only where it is fresh.
  func answered(_ request: PendingRequest, _ key: CoalescingKey, _ freshness: Freshness) {
    state.withLock { state in
      guard state.open[key]?.request === request else { return }
      state.count += 1
      state.open[key]?.response = (state.count, freshness)
    }
  }

  /// Nobody joins it any more.
  ///
  /// - Parameter brought: its response, where that is stored.
  func end(_ request: PendingRequest, _ key: CoalescingKey, bringing brought: PendingRequest.Brought?) {
    // What is forgotten is released outside the lock.
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
      // All still count: they go, since a wait in vain costs less than a list without end.
      if state.marks.count >= Self.markLimit { state.marks = [:] }
      state.marks[hash] = now + Self.markLifetime
    }
  }

  func unmark(_ key: CoalescingKey) {
    let hash = key.hashValue
    state.withLock { _ = $0.marks.removeValue(forKey: hash) }
  }
}
