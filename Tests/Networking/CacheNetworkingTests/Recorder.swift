import CacheCore

/// The values that a test's callbacks have recorded, in order. A test can wait for them.
final class Recorder<Value: Sendable>: Sendable {
  private struct Waiter {
    let id: Int
    let count: Int
    let continuation: CheckedContinuation<Void, Never>
  }

  private struct State {
    var values: [Value] = []
    var nextID = 0
    var waiters: [Waiter] = []
  }

  private let state = Lock(State())

  var values: [Value] { state.withLock { $0.values } }

  func record(_ value: Value) {
    let ready: [Waiter] = state.withLock { state in
      state.values.append(value)
      let count = state.values.count
      defer { state.waiters.removeAll { $0.count <= count } }
      return state.waiters.filter { $0.count <= count }
    }
    for waiter in ready { waiter.continuation.resume() }
  }

  /// Waits until there are `count` values and returns them. Returns early if the test's time limit cancels it.
  @discardableResult
  func wait(for count: Int) async -> [Value] {
    let id = state.withLock { state in
      state.nextID += 1
      return state.nextID
    }
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let isReady = state.withLock { state in
          if state.values.count >= count || Task.isCancelled { return true }
          state.waiters.append(Waiter(id: id, count: count, continuation: continuation))
          return false
        }
        if isReady { continuation.resume() }
      }
    } onCancel: {
      let waiter: Waiter? = state.withLock { state in
        state.waiters.firstIndex { $0.id == id }.map { state.waiters.remove(at: $0) }
      }
      waiter?.continuation.resume()
    }
    return values
  }
}
