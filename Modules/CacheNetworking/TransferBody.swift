internal import CacheCore
internal import Foundation
internal import HTTPTypes

/// One sharer's view of a transfer's body. Letting go of it gives up its share; the last one stops the transfer.
final class TransferBody: ResourceBody.Source {
  private enum Outcome { case complete, failed(CacheError) }

  /// What the request adds to the transfer, until its body has ended.
  private struct Held {
    /// The request's own time limit.
    var deadline: DeadlineTimer.ScheduledDeadline?
    /// Raises the transfer with the request's priority.
    var observation: LoadPriority.Observation?
  }

  private let task: SessionDataTask
  private let token: SessionDataTask.CancelToken
  private let outcome = Lock<Outcome?>(nil)
  private let held: Lock<Held>

  init(_ share: TransferTable.Share, priority: LoadPriority, deadline: DeadlineTimer.ScheduledDeadline?) {
    task = share.transfer
    token = share.token
    let observation = priority.onRaise { [weak task = share.transfer] level in task?.raise(to: level) }
    held = Lock(Held(deadline: deadline, observation: observation))
    // After the observer is there: an earlier raise was not told to it.
    task.raise(to: priority.level)
  }

  deinit { task.cancel(token: token) }

  /// Waits for the head; to be called once, before the first ``next()``.
  func head() async throws(CacheError) -> HTTPResponse {
    switch await task.nextEvent(for: token) {
    case .head(let head): return head
    case .data: throw CacheError(.malformedResponse, reason: "bytes came before the head of the answer")
    case .end(let error): throw error ?? CacheError(.malformedResponse, reason: "the answer had no head")
    }
  }

  func next() async throws(CacheError) -> Data? {
    switch outcome.withLock({ $0 }) {
    case .complete: return nil
    case .failed(let error): throw error
    case nil: break
    }
    while true {
      switch await task.nextEvent(for: token) {
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
    task.cancel(token: token)
    releaseHeld()
  }

  /// `URLSession` keeps trailers to itself, on every platform.
  var trailers: HTTPFields? { nil }
}
