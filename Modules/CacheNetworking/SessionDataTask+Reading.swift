internal import CacheCore

extension SessionDataTask {
  /// A share that is read by asking; nil when it comes too late to get everything.
  func join() -> CancelToken? { state.withLock { $0.log.join(.pull(nil)) } }

  /// Waits for the share's next event. A cancelled task gives the share up, and gets the end that says so.
  func nextEvent(for token: CancelToken) async -> Event {
    if Task.isCancelled {
      cancel(token: token)
    } else if let event = state.withLock({ $0.log.next(for: token) }) {
      return event
    }
    return await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let event = state.withLock { $0.log.wait(token, continuation) }
        if let event { continuation.resume(returning: event) }
      }
    } onCancel: {
      cancel(token: token)
    }
  }
}
