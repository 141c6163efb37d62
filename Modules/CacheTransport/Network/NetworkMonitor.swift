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
  private let state = WatchedState(true)

  var isOpen: Bool { state.read { $0 } }

  func set(isOpen: Bool) { state.update { $0 = isOpen } }

  func pass() async throws(CancellationError) {
    await state.wait { $0 }
    if Task.isCancelled { throw CancellationError() }
  }
}
