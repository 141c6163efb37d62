internal import CacheCore

/// The running and pending copies between the layers.
final class CopyTable: Sendable {
  /// The maximum number of concurrent promotions.
  private static let width = 4

  private struct State {
    var running: Set<CacheKey> = []
    var pendingWriteBacks: [CacheKey] = []
    /// The places in the backlog that commits in progress have reserved.
    var reserved = 0
    var isWritingBack = false
    /// The waiters, which check again after each change.
    var waiters: [CheckedContinuation<Bool, Never>] = []
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

  /// - Returns: Whether the caller must start the writing back.
  func enqueueWriteBack(_ key: CacheKey) -> Bool {
    state.withLock { state in
      if !state.pendingWriteBacks.contains(key) { state.pendingWriteBacks.append(key) }
      defer { state.isWritingBack = true }
      return !state.isWritingBack
    }
  }

  /// Returns the next key to write back, or `nil` if none is left and the writing back ends.
  func nextWriteBack() -> CacheKey? {
    change { state in
      if state.pendingWriteBacks.isEmpty { state.isWritingBack = false }
      return state.pendingWriteBacks.isEmpty ? nil : state.pendingWriteBacks.removeFirst()
    }
  }

  func endWriteBack() { change { _ in } }

  func forget(_ key: CacheKey) { change { $0.pendingWriteBacks.removeAll { $0 == key } } }

  func forget(_ keys: Set<CacheKey>) { change { $0.pendingWriteBacks.removeAll { keys.contains($0) } } }

  func forgetAll() { change { $0.pendingWriteBacks = [] } }

  // MARK: Waiting

  func settled(_ resource: String) async { await wait { !$0.running.contains { $0.resource == resource } } }

  func idle() async { await wait { $0.running.isEmpty && !$0.isWritingBack } }

  /// Waits until fewer than `limit` entries wait to be written back, and reserves a place among them until ``release()``.
  func reserve(_ limit: Int) async {
    await wait { state in
      guard state.pendingWriteBacks.count + state.reserved < limit else { return false }
      state.reserved += 1
      return true
    }
  }

  func release() { change { $0.reserved -= 1 } }

  private func wait(until attempt: @Sendable (inout State) -> Bool) async {
    var isDone = false
    while !isDone {
      isDone = await withCheckedContinuation { continuation in
        let isOver = state.withLock { state in
          guard !attempt(&state) else { return true }
          state.waiters.append(continuation)
          return false
        }
        if isOver { continuation.resume(returning: true) }
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
    for waiter in waiters { waiter.resume(returning: false) }
    return result
  }
}
