internal import CacheCore
internal import Foundation

extension SessionDataTask {
  /// Returns the whole body after its head was received, if it has arrived and may be collected.
  func takeCollected() -> Data? { state.withLock { $0.buffer.takeWhole(upTo: collectUpTo) } }

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
