internal import CacheCore

/// Questions about what is stored that go on behind an answer which has been shown: one at a time for each resource, whoever has
/// shown it.
final class RevalidationTable: Sendable {
  /// What is asked about: a resource, as it is stored in these stores.
  struct Subject: Hashable, Sendable {
    /// A key, since those go by bytes.
    private let resource: CacheKey
    private let stores: [ComponentID?]

    init(_ cache: TieredCache) {
      resource = CacheKey(resource: cache.resource)
      stores = [cache.request.memory?.id, cache.request.store?.id]
    }
  }

  private struct Work {
    let number: Int
    /// Nil while it is being begun, and where a load asks.
    var task: Task<Void, Never>?
    let end = OneShotBroadcast<Void>()
  }

  private struct State {
    var running: [Subject: Work] = [:]
    var last = 0
    var isClosed = false
    /// The callers of ``RevalidationTable/close()`` that wait until nothing runs.
    var closers: [CheckedContinuation<Void, Never>] = []
  }

  private let state = Lock(State())

  /// For who asks itself: it has the turn, until ``leave(_:)``. Or another one asks already, and what is returned tells when it
  /// has its answer.
  func enter(_ subject: Subject) -> OneShotBroadcast<Void>? {
    state.withLock { state in
      if let other = state.running[subject] { return other.end }
      state.last += 1
      state.running[subject] = Work(number: state.last)
      return nil
    }
  }

  /// The turn is over.
  func leave(_ subject: Subject) {
    let (work, closers) = state.withLock { state in
      let work = state.running.removeValue(forKey: subject)
      guard state.running.isEmpty else { return (work, [CheckedContinuation<Void, Never>]()) }
      defer { state.closers = [] }
      return (work, state.closers)
    }
    work?.end.make(())
    for closer in closers { closer.resume() }
  }

  /// Begins the work, unless some is under way for the same resource, or the manager is closing.
  func begin(_ subject: Subject, _ work: @escaping @Sendable () async -> Void) {
    let number = state.withLock { state -> Int? in
      guard !state.isClosed, state.running[subject] == nil else { return nil }
      state.last += 1
      state.running[subject] = Work(number: state.last)
      return state.last
    }
    guard let number else { return }
    let task = Task.detached {
      await work()
      self.leave(subject)
    }
    let isClosed = state.withLock { state in
      // It may have ended already, and another one may have begun.
      if state.running[subject]?.number == number { state.running[subject]?.task = task }
      return state.isClosed
    }
    if isClosed { task.cancel() }
  }

  /// Begins nothing more, stops what runs, and returns when it has ended.
  func close() async {
    let running = state.withLock { state in
      state.isClosed = true
      return state.running.values.compactMap(\.task)
    }
    // Work that has no task yet is cancelled by `begin`, which finds this closed.
    for task in running { task.cancel() }
    await withCheckedContinuation { continuation in
      let isIdle = state.withLock { state in
        if state.running.isEmpty { return true }
        state.closers.append(continuation)
        return false
      }
      if isIdle { continuation.resume() }
    }
  }
}
