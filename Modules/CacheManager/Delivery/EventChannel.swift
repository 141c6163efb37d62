package import CacheCore

/// A channel from callbacks to one asynchronous consumer. It delivers events in order, and ends with an error or normally.
///
/// An `AsyncThrowingStream` would show a cancelled consumer a normal end. It would also not merge progress reports that were not
/// taken yet.
package final class EventChannel<Event: Sendable>: Sendable {
  private enum Ending { case finished, failed(CacheError) }

  private struct State {
    var queue: [Event] = []
    /// Whether the last event was sent. After it, only the ending is accepted.
    var hasLast = false
    var ending: Ending?
    var consumer: CheckedContinuation<Result<Event?, CacheError>, Never>?
    var onAbandon: (@Sendable () -> Void)?
    var isAbandoned = false
  }

  private let state = Lock(State())
  private let merge: @Sendable (Event, Event) -> Event?

  /// - Parameter merging: Returns one event that replaces two consecutive queued events, or `nil` if both stay queued.
  package init(merging merge: @escaping @Sendable (Event, Event) -> Event? = { _, _ in nil }) { self.merge = merge }

  /// Sets the work to run when the consumer goes away. Runs it at once if the consumer has gone already.
  package func onAbandon(_ work: @escaping @Sendable () -> Void) {
    let isLate = state.withLock { state in
      if !state.isAbandoned { state.onAbandon = work }
      return state.isAbandoned
    }
    if isLate { work() }
  }

  package func send(_ event: Event) { send(event, isLast: false) }

  private func send(_ event: Event, isLast: Bool) {
    let consumer = state.withLock { state -> CheckedContinuation<Result<Event?, CacheError>, Never>? in
      guard state.ending == nil, !state.hasLast, !state.isAbandoned else { return nil }
      state.hasLast = isLast
      if let consumer = state.consumer {
        state.consumer = nil
        return consumer
      }
      if let last = state.queue.last, let merged = merge(last, event) {
        state.queue[state.queue.count - 1] = merged
      } else {
        state.queue.append(event)
      }
      return nil
    }
    consumer?.resume(returning: .success(event))
  }

  /// Ends the channel, after `last` if there is one. No event comes between `last` and the end. Later calls do nothing.
  package func finish(with last: Event? = nil) {
    if let last { send(last, isLast: true) }
    end(.finished)
  }

  package func fail(_ error: CacheError) { end(.failed(error)) }

  private func end(_ ending: Ending) {
    let consumer = state.withLock { state -> CheckedContinuation<Result<Event?, CacheError>, Never>? in
      guard state.ending == nil else { return nil }
      state.ending = ending
      state.onAbandon = nil
      defer { state.consumer = nil }
      return state.consumer
    }
    consumer?.resume(returning: Self.result(of: ending))
  }

  private static func result(of ending: Ending) -> Result<Event?, CacheError> {
    switch ending {
    case .finished: .success(nil)
    case .failed(let error): .failure(error)
    }
  }

  package func next() async throws(CacheError) -> Event? {
    let result = await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let ready: Result<Event?, CacheError>? = state.withLock { state in
          if !state.queue.isEmpty { return .success(state.queue.removeFirst()) }
          if let ending = state.ending { return Self.result(of: ending) }
          if state.isAbandoned { return .failure(.cancelled) }
          state.consumer = continuation
          return nil
        }
        if let ready { continuation.resume(returning: ready) }
      }
    } onCancel: {
      abandon()
    }
    return try result.get()
  }

  /// Stops the work behind the channel and ends a pending ``next()`` with a cancellation, because the consumer went away.
  package func abandon() {
    let (work, consumer) = state.withLock { state in
      state.isAbandoned = true
      defer { (state.onAbandon, state.consumer) = (nil, nil) }
      return (state.onAbandon, state.consumer)
    }
    work?()
    consumer?.resume(returning: .failure(.cancelled))
  }
}
