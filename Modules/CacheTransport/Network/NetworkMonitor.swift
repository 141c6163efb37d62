internal import CacheCore

/// A monitor that tells whether a network is available, so that a retry waits for one instead of using up its attempts.
///
/// A ``RetryPolicy`` retains its monitor. On Apple platforms use `PathMonitor`. A server needs none.
public protocol NetworkMonitor: Sendable {
  /// Whether a request may succeed now. `true` if the state is unknown.
  var isReachable: Bool { get }
  /// Waits until ``isReachable`` is `true`. Throws as soon as the task is cancelled.
  func waitUntilReachable() async throws(CancellationError)
}

/// The waiting part of a ``NetworkMonitor``: a state and the tasks that wait for it.
///
/// The gate is initially open, because a monitor without a report must not delay requests.
final class ReachabilityGate: Sendable {
  private struct State {
    var isOpen = true
    var nextID = 0
    var waiting: [Int: CheckedContinuation<Bool, Never>] = [:]
  }

  private let state = Lock(State())

  var isOpen: Bool { state.withLock { $0.isOpen } }

  func set(isOpen: Bool) {
    let released = state.withLock { state -> [CheckedContinuation<Bool, Never>] in
      state.isOpen = isOpen
      guard isOpen else { return [] }
      defer { state.waiting = [:] }
      return Array(state.waiting.values)
    }
    for continuation in released { continuation.resume(returning: true) }
  }

  func pass() async throws(CancellationError) {
    let id = state.withLock { state in
      state.nextID += 1
      return state.nextID
    }
    let passed = await withTaskCancellationHandler {
      await withCheckedContinuation { enter(id, $0) }
    } onCancel: {
      cancel(id)
    }
    guard passed else { throw CancellationError() }
  }

  private func enter(_ id: Int, _ continuation: CheckedContinuation<Bool, Never>) {
    let passes = state.withLock { state -> Bool? in
      // An earlier cancellation found no waiter to wake. A concurrent one waits for the lock.
      if Task.isCancelled { return false }
      if state.isOpen { return true }
      state.waiting[id] = continuation
      return nil
    }
    if let passes { continuation.resume(returning: passes) }
  }

  private func cancel(_ id: Int) {
    state.withLock { $0.waiting.removeValue(forKey: id) }?.resume(returning: false)
  }
}
