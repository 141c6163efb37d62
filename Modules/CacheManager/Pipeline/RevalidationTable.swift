internal import CacheCore

/// The background revalidations of stale responses that were already delivered. For each resource, one runs at a time.
final class RevalidationTable: Sendable {
  /// A resource in certain stores.
  struct Subject: Hashable, Sendable {
    /// A key, because keys are compared byte by byte.
    private let resource: CacheKey
    private let stores: [ComponentID?]

    init(_ cache: TieredCache) {
      resource = CacheKey(resource: cache.resource)
      stores = [cache.request.memory?.id, cache.request.store?.id]
    }
  }

  private struct Work {
    let number: Int
    /// `nil` while the task is being created, and if a load revalidates.
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

  /// Starts a revalidation that the caller performs, until ``leave(_:)``.
  ///
  /// - Returns: `nil`, or the end of another running revalidation. The caller waits for that end instead.
  func enter(_ subject: Subject) -> OneShotBroadcast<Void>? {
    state.withLock { state in
      if let other = state.running[subject] { return other.end }
      state.last += 1
      state.running[subject] = Work(number: state.last)
      return nil
    }
  }

  /// Ends a revalidation.
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

  /// Starts a revalidation in the background, unless one is running for the same resource or the manager is closing.
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
      // The work may have ended already, and another revalidation may have started.
      if state.running[subject]?.number == number { state.running[subject]?.task = task }
      return state.isClosed
    }
    if isClosed { task.cancel() }
  }

  /// Starts no more revalidations, cancels the running ones, and returns when they have ended.
  func close() async {
    let running = state.withLock { state in
      state.isClosed = true
      return state.running.values.compactMap(\.task)
    }
    // `begin` cancels work that has no task yet, since it finds the table closed.
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
