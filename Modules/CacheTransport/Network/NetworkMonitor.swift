/// Tells whether there is a network at all, so that a retry waits for one instead of using its attempts up.
///
/// Held strongly by the ``RetryPolicy`` that has it. On Apple platforms `PathMonitor` is one; a server has none and needs none.
public protocol NetworkMonitor: Sendable {
  /// Whether a request has a chance now. Who does not know says yes.
  var isReachable: Bool { get }
  /// Returns once ``isReachable`` holds, at once when it does already; throws as soon as the task is cancelled.
  func waitUntilReachable() async throws(CancellationError)
}
