internal import CacheCore

/// Counts what users have removed, cleared or purged, and remembers the purges, so that a load which began before can't bring it back.
///
/// The count goes up before anything is removed: who still sees the old count writes before the removal, and is removed with the rest.
final class RemovalEpoch: Sendable {
  private struct State {
    var count = 0
    /// The latest purges, each with the count that it made.
    var purges: [(count: Int, purge: Purge)] = []
    /// The count of the latest purge that is not remembered any more.
    var forgotten = 0
  }

  /// How many purges are remembered, at least. An answer that was asked for before more of them than that is treated as purged.
  static let memory = 1_000

  private let state = Lock(State())

  var current: Int { state.withLock { $0.count } }

  func advance() { state.withLock { $0.count += 1 } }

  func advance(with purge: Purge) {
    state.withLock { state in
      state.count += 1
      state.purges.append((state.count, purge))
      guard state.purges.count >= 2 * Self.memory else { return }
      state.forgotten = state.purges[Self.memory - 1].count
      state.purges.removeFirst(Self.memory)
    }
  }

  /// The purges since `epoch`; nil: not all of them are remembered.
  private func purges(since epoch: Int) -> [Purge]? {
    state.withLock { state in
      guard let last = state.purges.last, last.count > epoch else { return [] }
      guard state.forgotten <= epoch else { return nil }
      let first = state.purges.lastIndex { $0.count <= epoch }.map { $0 + 1 } ?? 0
      return state.purges[first...].map(\.purge)
    }
  }

  /// Whether a purge since `epoch` may have met an answer of a resource.
  func mayHaveMet(_ resource: String, since epoch: Int) -> Bool {
    guard let purges = purges(since: epoch) else { return true }
    return purges.contains { $0.mayMeet(resource) }
  }

  /// What the purges since `epoch` do to an answer that was on its way then; nil: none of them meets it.
  func outcome(for key: CacheKey, _ metadata: StoredMetadata, since epoch: Int) -> PurgeMode? {
    guard let purges = purges(since: epoch) else { return .hard }
    var outcome: PurgeMode?
    for purge in purges where purge.meets(key, metadata) {
      if purge.mode == .hard { return .hard }
      outcome = .soft
    }
    return outcome
  }
}
