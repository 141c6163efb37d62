internal import CacheCore
internal import Foundation
internal import HTTPTypes

/// One sharer's view of a transfer's body. Letting go of it gives up its share; the last one stops the transfer.
final class TransferBody: Body.Source {
  private enum Outcome { case complete, failed(CacheError) }

  private let task: SessionDataTask
  private let token: SessionDataTask.CancelToken
  private let outcome = Lock<Outcome?>(nil)
  /// The request's own time limit, while it counts.
  private let deadline: Lock<DeadlineWatch.Appointment?>

  init(_ share: TransferTable.Share, deadline: DeadlineWatch.Appointment?) {
    task = share.transfer
    token = share.token
    self.deadline = Lock(deadline)
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
        endDeadline()
        return nil
      case .end(let error?):
        if error.code != .misuse {
          outcome.withLock { $0 = .failed(error) }
          endDeadline()
        }
        throw error
      }
    }
  }

  private func endDeadline() {
    let appointment = deadline.withLock { deadline in
      defer { deadline = nil }
      return deadline
    }
    withExtendedLifetime(appointment) {}
  }

  func cancel() { task.cancel(token: token) }

  /// `URLSession` keeps trailers to itself, on every platform.
  var trailers: HTTPFields? { nil }
}
