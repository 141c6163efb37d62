internal import CacheCore

/// A word that comes once, for as many as wait for it.
final class OneShotBroadcast<Value: Sendable>: Sendable {
  private struct State {
    var value: Value?
    var waiting: [Int: CheckedContinuation<Value?, Never>] = [:]
    /// Who waits no longer, though it may only be about to begin.
    var released: Set<Int> = []
    /// The latest waiter without a number of its own.
    var lastUnnumbered = 0
  }

  private let state = Lock(State())

  /// The word, where it has come.
  var value: Value? { state.withLock { $0.value } }

  /// Says it. The first word counts.
  func make(_ value: Value) {
    let waiting = state.withLock { state in
      guard state.value == nil else { return [CheckedContinuation<Value?, Never>]() }
      state.value = value
      defer { state.waiting = [:] }
      return Array(state.waiting.values)
    }
    for waiter in waiting { waiter.resume(returning: value) }
  }

  /// Waits for the word. Nil: the waiter was released, or its task is cancelled.
  ///
  /// - Parameter id: the waiter's own; it waits once.
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

  /// Waits for the word. Nil: the waiting task is cancelled.
  func value() async -> Value? {
    let id = state.withLock { state in
      state.lastUnnumbered -= 1
      return state.lastUnnumbered
    }
    return await value(for: id)
  }

  /// Waits for the word, not longer than `limit`.
  func value(for id: Int, within limit: Duration, by clock: any CacheClock) async -> Value? {
    let timer = Task { [weak self] in
      guard (try? await clock.sleep(for: limit)) != nil else { return }
      self?.release(id)
    }
    defer { timer.cancel() }
    return await value(for: id)
  }

  /// Lets one go without the word.
  func release(_ id: Int) {
    let waiter = state.withLock { state in
      state.released.insert(id)
      return state.waiting.removeValue(forKey: id)
    }
    waiter?.resume(returning: nil)
  }
}
