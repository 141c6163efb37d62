internal import CacheCore

/// Which copies between the layers are under way, or wait to be.
final class Copies: Sendable {
  /// Entries that are promoted at once.
  private static let width = 4

  private struct State {
    var running: Set<CacheKey> = []
    var owed: [CacheKey] = []
    var isWritingBack = false
    /// Whoever waits looks again after each change.
    var waiters: [CheckedContinuation<Void, Never>] = []
  }

  enum Beginning { case begun, running, busy }

  private let state = Lock(State())

  // MARK: Up

  func begin(_ key: CacheKey) -> Beginning {
    state.withLock { state in
      guard !state.running.contains(key) else { return .running }
      guard state.running.count < Self.width else { return .busy }
      state.running.insert(key)
      return .begun
    }
  }

  func end(_ key: CacheKey) { change { $0.running.remove(key) } }

  // MARK: Down

  /// - Returns: whether somebody has to begin with it.
  func owe(_ key: CacheKey) -> Bool {
    state.withLock { state in
      if !state.owed.contains(key) { state.owed.append(key) }
      defer { state.isWritingBack = true }
      return !state.isWritingBack
    }
  }

  /// Nil: none is left, and whoever asked is done.
  func nextOwed() -> CacheKey? {
    change { state in
      if state.owed.isEmpty { state.isWritingBack = false }
      return state.owed.isEmpty ? nil : state.owed.removeFirst()
    }
  }

  func endOwed() { change { _ in } }

  func forget(_ key: CacheKey) { change { $0.owed.removeAll { $0 == key } } }

  func forgetAll() { change { $0.owed = [] } }

  // MARK: Waiting

  func settled(_ resource: String) async { await wait { $0.running.contains { $0.resource == resource } } }

  func idle() async { await wait { !$0.running.isEmpty || $0.isWritingBack } }

  /// Returns when fewer than `limit` entries wait to be written back.
  func room(_ limit: Int) async { await wait { $0.owed.count >= limit } }

  private func wait(while isBusy: @Sendable (State) -> Bool) async {
    while state.withLock({ isBusy($0) }) {
      await withCheckedContinuation { continuation in
        let isOver = state.withLock { state in
          guard isBusy(state) else { return true }
          state.waiters.append(continuation)
          return false
        }
        if isOver { continuation.resume() }
      }
    }
  }

  @discardableResult
  private func change<Result>(_ body: (inout State) -> Result) -> Result {
    let (result, waiters) = state.withLock { state in
      let result = body(&state)
      defer { state.waiters = [] }
      return (result, state.waiters)
    }
    for waiter in waiters { waiter.resume() }
    return result
  }
}
