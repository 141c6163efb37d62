import CacheCore

/// What a test's callbacks have seen, in order, and a way to wait for it.
final class Recorder<Value: Sendable>: Sendable {
  private struct State {
    var values: [Value] = []
    var waiters: [(count: Int, continuation: CheckedContinuation<Void, Never>)] = []
  }

  private let state = Lock(State())

  var values: [Value] { state.withLock { $0.values } }

  func record(_ value: Value) {
    let ready: [CheckedContinuation<Void, Never>] = state.withLock { state in
      state.values.append(value)
      let count = state.values.count
      defer { state.waiters.removeAll { $0.count <= count } }
      return state.waiters.filter { $0.count <= count }.map(\.continuation)
    }
    for continuation in ready { continuation.resume() }
  }

  /// Returns the values once there are so many.
  @discardableResult
  func wait(for count: Int) async -> [Value] {
    await withCheckedContinuation { continuation in
      let isReady = state.withLock { state in
        if state.values.count >= count { return true }
        state.waiters.append((count, continuation))
        return false
      }
      if isReady { continuation.resume() }
    }
    return values
  }
}
