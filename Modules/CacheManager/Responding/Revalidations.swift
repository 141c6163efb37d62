internal import CacheCore

/// Questions about stored answers that nobody waits for: one at a time for each answer.
final class Revalidations: Sendable {
  private struct Work {
    let number: Int
    /// Nil while it is being begun.
    var task: Task<Void, Never>?
  }

  private struct State {
    var running: [CacheKey: Work] = [:]
    var last = 0
    var isClosed = false
  }

  private let state = Lock(State())

  /// Begins the work, unless some is under way for the same answer, or the manager is closing.
  func begin(_ key: CacheKey, _ work: @escaping @Sendable () async -> Void) {
    let number = state.withLock { state -> Int? in
      guard !state.isClosed, state.running[key] == nil else { return nil }
      state.last += 1
      state.running[key] = Work(number: state.last)
      return state.last
    }
    guard let number else { return }
    let task = Task.detached {
      await work()
      self.state.withLock { _ = $0.running.removeValue(forKey: key) }
    }
    let isClosed = state.withLock { state in
      // It may have ended already, and another one may have begun.
      if state.running[key]?.number == number { state.running[key]?.task = task }
      return state.isClosed
    }
    if isClosed { task.cancel() }
  }

  /// Begins nothing more, stops what runs, and returns when it has ended.
  func close() async {
    while true {
      let running = state.withLock { state in
        state.isClosed = true
        return state.running.values.compactMap(\.task)
      }
      for task in running { task.cancel() }
      for task in running { await task.value }
      // One that was being begun shows itself a moment later.
      if state.withLock({ $0.running.isEmpty }) { return }
      await Task.yield()
    }
  }
}
