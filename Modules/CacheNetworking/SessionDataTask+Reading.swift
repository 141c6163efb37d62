internal import CacheCore

extension SessionDataTask {
  /// Waits for the reader's next event. If the calling task is cancelled, the transfer stops and the event is its end.
  func nextEvent() async -> Event {
    if Task.isCancelled {
      cancel()
    } else if let event = state.withLock({ $0.buffer.nextUnlessAwaited() }) {
      return event
    }
    return await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let event = state.withLock { $0.buffer.wait(continuation) }
        if let event { continuation.resume(returning: event) }
      }
    } onCancel: {
      cancel()
    }
  }
}
