internal import CacheCore

/// The log of all removals and purges, and of the resources that unsafe requests made outdated. A load that began before such an
/// event cannot bring the responses back.
///
/// The count rises before anything is removed. A load that still sees the old count writes before the removal, so its entry is
/// removed with the rest.
final class InvalidationLog: Sendable {
  private struct State {
    var count = 0
    /// The latest purges, each with the count that it set.
    var purges: [(count: Int, purge: Purge)] = []
    /// The resources that were removed or invalidated, each with the latest count. Each unsafe request may add one, so they are
    /// looked up by name and not searched.
    var resources: [String: Int] = [:]
    /// The count of the latest purge or removal that is no longer remembered.
    var forgotten = 0
    var hasSeenTransforms = false
  }

  /// The minimum number of purges, and of removals, to remember. If more of them followed the request of a response, the response
  /// is treated as purged.
  static let memory = 1_000

  private let state = Lock(State())

  /// Whether any load has requested a transform whose values can be stored. Until then, new responses do not look for outdated
  /// transforms. Such transforms would come from another program or an earlier run, and are misses.
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

  /// Records the removal of a resource, also by an unsafe request that has changed the resource (RFC 9111 §4.4).
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

  /// Returns the purges since `logPosition`. Returns `nil` if the resource was removed since then, or if earlier events have been
  /// forgotten.
  private func purges(since logPosition: Int, sparing resource: String) -> [Purge]? {
    state.withLock { state in
      guard state.count > logPosition else { return [] }
      guard state.forgotten <= logPosition, state.resources[resource] ?? 0 <= logPosition else { return nil }
      guard let last = state.purges.last, last.count > logPosition else { return [] }
      let first = state.purges.lastIndex { $0.count <= logPosition }.map { $0 + 1 } ?? 0
      return state.purges[first...].map(\.purge)
    }
  }

  /// Whether a purge or a removal since `logPosition` may have affected a response of the resource.
  func mayHaveMatched(_ resource: String, since logPosition: Int) -> Bool {
    guard let purges = purges(since: logPosition, sparing: resource) else { return true }
    return purges.contains { $0.mayMatch(resource) }
  }

  /// Returns the effect of the purges and removals since `logPosition` on a response that was requested before them. Returns
  /// `nil` if none affects it.
  func outcome(for key: CacheKey, _ metadata: StoredMetadata, since logPosition: Int) -> PurgeMode? {
    guard let purges = purges(since: logPosition, sparing: key.resource) else { return .hard }
    var outcome: PurgeMode?
    for purge in purges where purge.matches(key, metadata) {
      if purge.mode == .hard { return .hard }
      outcome = .soft
    }
    return outcome
  }
}
