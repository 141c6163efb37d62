internal import CacheCore

/// Counts what has been removed, cleared, purged or made outdated by unsafe requests, and remembers it, so that a load which
/// began before can't bring it back.
///
/// The count goes up before anything is removed: who still sees the old count writes before the removal, and is removed with the
/// rest.
final class InvalidationLog: Sendable {
  private struct State {
    var count = 0
    /// The latest purges, each with the count that it made.
    var purges: [(count: Int, purge: Purge)] = []
    /// Resources that were removed or invalidated, each with the count that the latest time made. There may be one for each
    /// unsafe request, so they are looked up, not gone through.
    var resources: [String: Int] = [:]
    /// The count of the latest purge, or removal, that is not remembered any more.
    var forgotten = 0
    var hasSeenTransforms = false
  }

  /// How many purges, and how many removals, are remembered, at least. An answer that was asked for before more of them than that
  /// is treated as purged.
  static let memory = 1_000

  private let state = Lock(State())

  /// Whether any load has asked for a transform that can be stored. Until then no new answer looks for transforms that it
  /// outdates: they would be another program's, or an earlier run's, and are misses.
  var hasSeenTransforms: Bool { state.withLock { $0.hasSeenTransforms } }

  func noteTransforms() { state.withLock { $0.hasSeenTransforms = true } }

  var current: Int { state.withLock { $0.count } }

  func advance() { state.withLock { $0.count += 1 } }

  func advance(with purge: Purge) {
    state.withLock { state in
      state.count += 1
      state.purges.append((state.count, purge))
      guard state.purges.count >= 2 * Self.memory else { return }
      state.forgotten = max(state.forgotten, state.purges[Self.memory - 1].count)
      state.purges.removeFirst(Self.memory)
    }
  }

  /// Everything of one resource is removed, or is outdated since an unsafe request has changed it (RFC 9111 §4.4).
  func advance(removing resource: String) {
    state.withLock { state in
      state.count += 1
      state.resources[resource] = state.count
      guard state.resources.count >= 2 * Self.memory else { return }
      let last = state.resources.values.sorted()[Self.memory - 1]
      state.forgotten = max(state.forgotten, last)
      state.resources = state.resources.filter { $0.value > last }
    }
  }

  /// The purges since `logPosition`; nil: the resource was removed since then, or not all is remembered.
  private func purges(since logPosition: Int, sparing resource: String) -> [Purge]? {
    state.withLock { state in
      guard state.count > logPosition else { return [] }
      guard state.forgotten <= logPosition, state.resources[resource] ?? 0 <= logPosition else { return nil }
      guard let last = state.purges.last, last.count > logPosition else { return [] }
      let first = state.purges.lastIndex { $0.count <= logPosition }.map { $0 + 1 } ?? 0
      return state.purges[first...].map(\.purge)
    }
  }

  /// Whether a purge since `logPosition`, or a removal, may have met an answer of a resource.
  func mayHaveMet(_ resource: String, since logPosition: Int) -> Bool {
    guard let purges = purges(since: logPosition, sparing: resource) else { return true }
    return purges.contains { $0.mayMeet(resource) }
  }

  /// What the purges and removals since `logPosition` do to an answer that was on its way then; nil: none of them meets it.
  func outcome(for key: CacheKey, _ metadata: StoredMetadata, since logPosition: Int) -> PurgeMode? {
    guard let purges = purges(since: logPosition, sparing: key.resource) else { return .hard }
    var outcome: PurgeMode?
    for purge in purges where purge.meets(key, metadata) {
      if purge.mode == .hard { return .hard }
      outcome = .soft
    }
    return outcome
  }
}
