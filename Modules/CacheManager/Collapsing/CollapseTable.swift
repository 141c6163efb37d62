internal import CacheCore

/// The requests of a manager that are on their way to an origin and may be joined: equal ones are collapsed into one (RFC 9111 §4).
final class CollapseTable: Sendable {
  /// What becomes of a request.
  enum Place {
    /// It is the first: it asks, and tells.
    case leading(Leadership)
    case following(CollapsedRequest)
    /// It asks for itself, and nobody waits for it.
    case alone
    /// Its answer was stored since it looked into the stores.
    case late
  }

  private struct State {
    var open: [FlightKey: CollapsedRequest] = [:]
    /// Hashes of requests whose answers others can't use, with the time until which they don't wait for each other. A hash, since a key has credentials.
    var marks: [Int: Timestamp] = [:]
    /// Hashes of the latest requests whose answers were stored, each in the place of its number.
    var stored = [Int](repeating: 0, count: CollapseTable.memory)
    var count = 0
  }

  /// How long requests don't wait for each other after the answer to one was of no use to another. Without that they would wait in vain, one time after the other.
  static let markLifetime = Duration.seconds(120)
  /// How many requests are marked at most.
  static let markLimit = 4_096
  /// How many of the requests that have ended are remembered.
  private static let memory = 64

  private let state = Lock(State())

  /// How many requests have ended with a stored answer: who looks into the stores takes it before.
  var count: Int { state.withLock { $0.count } }

  /// Finds the place of a request that can't be answered with what is stored.
  ///
  /// - Parameters:
  ///   - key: equal for requests that may get one answer.
  ///   - count: as it was before the request looked into the stores.
  ///   - mayLead: whether its answer may be one for others.
  ///   - shelf: where it has looked.
  func place(_ key: FlightKey, since count: Int, mayLead: Bool, _ shelf: Shelf) -> Place {
    let (load, hash) = (shelf.load, key.hashValue)
    let now = load.clock.now
    return state.withLock { state in
      // What was asked for before a purge is not for who comes after it.
      if let request = state.open[key], !load.removals.mayHaveMet(shelf.resource, since: request.epoch) {
        return .following(request)
      }
      if Self.wasStored(hash, since: count, state) { return .late }
      guard mayLead else { return .alone }
      let request = CollapsedRequest(epoch: shelf.epoch)
      // Nobody waits for a marked one; but what comes of it ends the mark, or renews it.
      if state.marks[hash].map({ $0 <= now }) ?? true { state.open[key] = request }
      return .leading(Leadership(request, key, self, load.clock))
    }
  }

  private static func wasStored(_ hash: Int, since count: Int, _ state: State) -> Bool {
    guard state.count - count <= memory else { return true }
    return (count..<state.count).contains { state.stored[$0 % memory] == hash }
  }

  /// Nobody joins it any more.
  func end(_ request: CollapsedRequest, _ key: FlightKey, isStored: Bool) {
    let hash = key.hashValue
    state.withLock { state in
      guard state.open[key] === request else { return }
      state.open[key] = nil
      guard isStored else { return }
      state.stored[state.count % Self.memory] = hash
      state.count += 1
    }
  }

  func mark(_ key: FlightKey, at now: Timestamp) {
    let hash = key.hashValue
    state.withLock { state in
      if state.marks.count >= Self.markLimit { state.marks = state.marks.filter { now < $0.value } }
      // All still count: they go, since a wait in vain costs less than a list without end.
      if state.marks.count >= Self.markLimit { state.marks = [:] }
      state.marks[hash] = now + Self.markLifetime
    }
  }

  func unmark(_ key: FlightKey) {
    let hash = key.hashValue
    state.withLock { _ = $0.marks.removeValue(forKey: hash) }
  }
}
