internal import CacheCore

/// Questions about stored answers that nobody waits for: one at a time for each answer.
final class Revalidations: Sendable {
  private struct State {
    var running: [CacheKey: Task<Void, Never>?] = [:]
    var isClosed = false
  }

  private let state = Lock(State())

  /// Begins the work, unless some is under way for the same answer, or the manager is closing.
  func begin(_ key: CacheKey, _ work: @escaping @Sendable () async -> Void) {
    let isNew = state.withLock { state in
      guard !state.isClosed, state.running[key] == nil else { return false }
      state.running[key] = .some(nil)
      return true
    }
    guard isNew else { return }
    let task = Task.detached {
      await work()
      self.state.withLock { _ = $0.running.removeValue(forKey: key) }
    }
    let isClosed = state.withLock { state in
      if state.running[key] != nil { state.running[key] = task }
      return state.isClosed
    }
    if isClosed { task.cancel() }
  }

  /// Begins nothing more, stops what runs, and returns when it has ended.
  func close() async {
    while true {
      let running = state.withLock { state in
        state.isClosed = true
        return state.running.values.compactMap { $0 }
      }
      for task in running { task.cancel() }
      for task in running { await task.value }
      // One that was being begun shows itself a moment later.
      if state.withLock({ $0.running.isEmpty }) { return }
      await Task.yield()
    }
  }
}
