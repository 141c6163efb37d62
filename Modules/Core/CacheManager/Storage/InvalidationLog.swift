internal import CacheCore
internal import Synchronization

/// The log of all removals and purges, and of the resources that unsafe requests made outdated. A load that began before such an
/// event cannot bring the responses back.
///
/// The count rises before anything is removed. A load that still sees the old count writes before the removal, so its entry is
/// removed with the rest.
final class InvalidationLog: Sendable {
  /// The latest counts at which the responses of one resource became outdated or left the stores, or 0.
  private struct ResourceEvents {
    var hard = 0
    var soft = 0
    var removal = 0
  }

  private struct State {
    var count = 0
    /// The latest purges of several resources, each with the count that it set.
    var purges: [(count: Int, purge: Purge)] = []
    /// The resources that were purged, removed or changed, by the hashes of their names. Each unsafe request may add one, so they
    /// are looked up and not searched. Equal hashes only prevent a response from being stored.
    var recent: [Int: ResourceEvents] = [:]
    /// The resources that ``recent`` had when it was last full, the count at that time, and the count of the latest purge then.
    var earlier: (resources: [Int: ResourceEvents], count: Int, latestPurge: Int) = ([:], 0, 0)
    /// The count of the latest purge of a single resource.
    var latestPurge = 0
    /// The count of the latest purge that is no longer remembered.
    var forgotten = 0
    /// The count of the latest removal that is no longer remembered. Removals say nothing about responses that are arriving.
    var forgottenRemoval = 0
    /// The count of the latest event that may have removed entries of any resource.
    var generalRemoval = 0
    var hasSeenTransforms = false

    /// Returns the next count.
    mutating func next() -> Int {
      count += 1
      return count
    }

    func events(of hash: Int) -> ResourceEvents { recent[hash] ?? earlier.resources[hash] ?? ResourceEvents() }

    /// - Parameter mode: The effect on the responses of the resource, or `nil` if only entries have left the stores.
    mutating func record(_ hash: Int, _ mode: PurgeMode?) {
      let count = next()
      var events = events(of: hash)
      events.removal = count
      switch mode {
      case .hard?: events.hard = count
      case .soft?: events.soft = count
      case nil: break
      }
      if mode != nil { latestPurge = count }
      recent[hash] = events
      guard recent.count >= InvalidationLog.resourceMemory else { return }
      forgotten = max(forgotten, earlier.latestPurge)
      forgottenRemoval = max(forgottenRemoval, earlier.count)
      earlier = (recent, count, latestPurge)
      recent = [:]
    }

    mutating func add(_ purge: Purge) {
      let count = next()
      generalRemoval = count
      purges.append((count, purge))
      guard purges.count >= 2 * InvalidationLog.purgeMemory else { return }
      forgotten = max(forgotten, purges[InvalidationLog.purgeMemory - 1].count)
      purges.removeFirst(InvalidationLog.purgeMemory)
    }
  }

  /// The minimum number of purges of several resources to remember. If more of them followed the request of a response, the
  /// response is treated as purged.
  static let purgeMemory = 1_000
  /// The minimum number of resources to remember that were purged, removed or changed.
  static let resourceMemory = 1 << 15

  private let state = Lock(State())
  private let count = Atomic<Int>(0)

  /// Whether any load has requested a transform whose values can be stored. Until then, new responses do not look for outdated
  /// transforms. Such transforms would come from another program or an earlier run, and are misses.
  var hasSeenTransforms: Bool { state.withLock { $0.hasSeenTransforms } }

  func noteTransforms() { state.withLock { $0.hasSeenTransforms = true } }

  /// The latest count. Most queries need nothing else, so it is read without the lock. A removal follows its event, and the lock
  /// of the memory store orders both with a response that is stored there at the same time.
  var current: Int { count.load(ordering: .acquiring) }

  private static func hash(of resource: String) -> Int { CacheKey(resource: resource).fingerprint }

  // MARK: Events

  /// Records a purge, before anything is removed.
  func advance(with purge: Purge) {
    let hash = purge.resource.map(Self.hash)
    change { state in
      if let hash { state.record(hash, purge.mode) } else { state.add(purge) }
    }
  }

  /// Records the removal of a resource, also by an unsafe request that has changed the resource (RFC 9111 §4.4).
  func advance(removing resource: String) {
    let hash = Self.hash(of: resource)
    change { $0.record(hash, .hard) }
  }

  /// Records that entries of a resource have left the durable store. What was read from it before is not put into memory.
  ///
  /// - Parameter resource: The resource, or `nil` for any resource.
  func advance(afterRemovalOf resource: String?) {
    let hash = resource.map(Self.hash)
    change { state in
      if let hash { state.record(hash, nil) } else { state.generalRemoval = state.next() }
    }
  }

  private func change(_ body: (inout State) -> Void) {
    state.withLock { state in
      body(&state)
      count.store(state.count, ordering: .releasing)
    }
  }

  // MARK: Queries

  /// Whether entries of a resource may have left the stores since `logPosition`, or so many others have that it is not known.
  func mayHaveRemoved(_ resource: String, since logPosition: Int) -> Bool {
    // Usually nothing has happened, and the hash is not needed.
    guard current > logPosition else { return false }
    let hash = Self.hash(of: resource)
    return state.withLock { max($0.generalRemoval, $0.forgottenRemoval, $0.events(of: hash).removal) > logPosition }
  }

  /// Returns the effect of the purges and removals of this resource alone since `logPosition`, and the purges of several
  /// resources since then. The effect is a hard purge if earlier events have been forgotten.
  private func events(of resource: String, since logPosition: Int) -> (own: PurgeMode?, purges: [Purge]) {
    guard current > logPosition else { return (nil, []) }
    let hash = Self.hash(of: resource)
    return state.withLock { state in
      let own = state.events(of: hash)
      guard state.forgotten <= logPosition, own.hard <= logPosition else { return (.hard, []) }
      let mode: PurgeMode? = own.soft > logPosition ? .soft : nil
      guard let last = state.purges.last, last.count > logPosition else { return (mode, []) }
      let first = state.purges.lastIndex { $0.count <= logPosition }.map { $0 + 1 } ?? 0
      return (mode, state.purges[first...].map(\.purge))
    }
  }

  /// Whether a purge or a removal since `logPosition` may have affected a response of the resource.
  func mayHaveMatched(_ resource: String, since logPosition: Int) -> Bool {
    let (own, purges) = events(of: resource, since: logPosition)
    return own != nil || purges.contains { $0.mayMatch(resource) }
  }

  /// Whether a purge or a removal since `logPosition` may have affected a response of any resource.
  func mayHaveMatchedAny(since logPosition: Int) -> Bool {
    guard current > logPosition else { return false }
    return state.withLock { max($0.latestPurge, $0.purges.last?.count ?? 0) > logPosition }
  }

  /// Returns the effect of the purges and removals since `logPosition` on a response that was requested before them. Returns
  /// `nil` if none affects it.
  func outcome(for key: CacheKey, _ metadata: StoredMetadata, since logPosition: Int) -> PurgeMode? {
    guard current > logPosition else { return nil }
    var (outcome, purges) = events(of: key.resource, since: logPosition)
    if outcome == .hard { return .hard }
    for purge in purges where purge.matches(key, metadata) {
      if purge.mode == .hard { return .hard }
      outcome = .soft
    }
    return outcome
  }
}
