/// A monitor that tells whether a network is available, so that a retry waits for one instead of using up its attempts.
///
/// A ``RetryPolicy`` retains its monitor. On Apple platforms use `PathMonitor`. A server needs none.
public protocol NetworkMonitor: Sendable {
  /// Whether a request may succeed now. `true` if the state is unknown.
  var isReachable: Bool { get }
  /// Waits until ``isReachable`` is `true`. Throws as soon as the task is cancelled.
  func waitUntilReachable() async throws(CancellationError)
}
