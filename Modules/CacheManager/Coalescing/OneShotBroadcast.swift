internal import CacheCore

/// A value that is sent once to any number of waiters.
final class OneShotBroadcast<Value: Sendable>: Sendable {
  private struct State {
    var value: Value?
    var waiting: [Int: CheckedContinuation<Value?, Never>] = [:]
    /// The waiters that were released, including those that have not begun to wait yet.
    var released: Set<Int> = []
    /// The identifier of the latest waiter that has no number of its own. These identifiers are negative.
    var lastUnnumbered = 0
  }

  private let state = Lock(State())

  /// The value, or `nil` if it has not been sent.
  var value: Value? { state.withLock { $0.value } }

  /// Sends the value to all waiters. Only the first value counts.
  func make(_ value: Value) {
    let waiting = state.withLock { state in
      guard state.value == nil else { return [CheckedContinuation<Value?, Never>]() }
      state.value = value
      defer { state.waiting = [:] }
      return Array(state.waiting.values)
    }
    for waiter in waiting { waiter.resume(returning: value) }
  }

  /// Waits for the value. Returns `nil` if the waiter is released or its task is cancelled.
  ///
  /// - Parameter id: The number of the waiter. Each waiter waits once.
  func value(for id: Int) async -> Value? {
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let (isReady, value): (Bool, Value?) = state.withLock { state in
          if let value = state.value { return (true, value) }
          if state.released.contains(id) { return (true, nil) }
          state.waiting[id] = continuation
          return (false, nil)
        }
        if isReady { continuation.resume(returning: value) }
      }
    } onCancel: {
      release(id)
    }
  }

  /// Waits for the value. Returns `nil` if the waiting task is cancelled.
  func value() async -> Value? {
    let id = state.withLock { state in
      state.lastUnnumbered -= 1
      return state.lastUnnumbered
    }
    return await value(for: id)
  }

  /// Waits for the value, at most for `limit`. Returns `nil` if the time is over, the waiter is released, or its task is
  /// cancelled.
  func value(for id: Int, within limit: Duration, by clock: any CacheClock) async -> Value? {
    let timer = Task { [weak self] in
      guard (try? await clock.sleep(for: limit)) != nil else { return }
      self?.release(id)
    }
    defer { timer.cancel() }
    return await value(for: id)
  }

  /// Releases a waiter without the value.
  func release(_ id: Int) {
    let waiter = state.withLock { state in
      state.released.insert(id)
      return state.waiting.removeValue(forKey: id)
    }
    waiter?.resume(returning: nil)
  }
}
