internal import CacheCore
internal import Foundation
internal import HTTPTypes

/// The reader's side of a transfer: the body of its response. Releasing it stops the transfer.
final class TransferBody: ResourceBody.Source {
  private enum Outcome { case complete, failed(CacheError) }

  /// The parts that are released when the body has ended.
  private struct Held {
    /// The time limit of the request.
    var deadline: DeadlineTimer.ScheduledDeadline?
    /// Raises the transfer's priority with the request's.
    var observation: LoadPriority.Observation?
  }

  private let task: SessionDataTask
  private let outcome = Lock<Outcome?>(nil)
  private let held: Lock<Held>

  init(_ task: SessionDataTask, priority: LoadPriority?, deadline: DeadlineTimer.ScheduledDeadline?) {
    self.task = task
    let observation = priority?.onRaise { [weak task] level in task?.raise(to: level) }
    held = Lock(Held(deadline: deadline, observation: observation))
    // The raise follows the registration, because the observer is not told of earlier raises.
    if let priority { task.raise(to: priority.level) }
  }

  deinit { task.cancel() }

  /// Waits for the head. Called once, before the first ``next()``.
  func head() async throws(CacheError) -> HTTPResponse {
    switch await task.nextEvent() {
    case .head(let head): return head
    case .data: throw CacheError(.malformedResponse, reason: "body bytes arrived before the head of the response")
    case .end(let error): throw error ?? CacheError(.malformedResponse, reason: "the response has no head")
    }
  }

  func next() async throws(CacheError) -> Data? {
    switch outcome.withLock({ $0 }) {
    case .complete: return nil
    case .failed(let error): throw error
    case nil: break
    }
    while true {
      switch await task.nextEvent() {
      case .head: continue
      case .data(let data): return data
      case .end(nil):
        outcome.withLock { $0 = .complete }
        releaseHeld()
        return nil
      case .end(let error?):
        if error.code != .misuse {
          outcome.withLock { $0 = .failed(error) }
          releaseHeld()
        }
        throw error
      }
    }
  }

  private func releaseHeld() {
    let former = held.withLock { held in
      defer { held = Held() }
      return held
    }
    withExtendedLifetime(former) {}
  }

  func cancel() {
    task.cancel()
    releaseHeld()
  }

  /// Always `nil`, because `URLSession` does not expose trailers on any platform.
  var trailers: HTTPFields? { nil }
}
