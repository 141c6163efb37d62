internal import CacheCore
internal import HTTPTypes
internal import Synchronization

/// The recovery that resumes a failed body. It requests the rest until it can be used, must not be used, or the policy gives up.
final class Resumption: BodyRecovery {
  private let attempts: RetryLoop
  private let plan: ResumptionPlan
  private let hasResumed = Atomic<Bool>(false)

  init(attempts: RetryLoop, plan: ResumptionPlan) {
    self.attempts = attempts
    self.plan = plan
  }

  func continuation(after error: CacheError, at position: Int64) async throws(CacheError) -> Continuation {
    attempts.log.close(isCounted: true)
    attempts.log.note(error)
    // The connection failed after the last byte, so the body is complete.
    if position == plan.length { return .complete }
    let error = RetryLoop.original(of: error)
    var failure = attempts.failure(.failure(error))
    defer { attempts.drain.end() }
    while true {
      guard try await isGranted(failure, at: position) else { throw attempts.log.final(failure.error ?? error) }
      switch try await attempts.send(plan.request(attempts.request, from: position)) {
      case .failure(let next): failure = attempts.failure(.failure(next))
      case .success(let response):
        let verdict = plan.judge(response.head, bodyLength: response.body.length, at: position)
        if case .unusable(let reason) = verdict {
          failure = try refused(response, error, at: position, reason)
        } else {
          return .bytes(response.body.source, skipping: verdict == .skip ? position : 0)
        }
      }
    }
  }

  /// Waits until the next request may be sent. The first one is sent at once, because the cause of most failures is gone by then.
  private func isGranted(_ failure: RetryFailure, at position: Int64) async throws(CacheError) -> Bool {
    var failure = failure
    failure.receivedBytes = position
    guard case .retry(let delay) = attempts.decision(on: failure) else { return false }
    let isFirst = !hasResumed.exchange(true, ordering: .relaxed)
    return try await attempts.wait(isFirst ? .zero : delay, after: failure)
  }

  /// Handles a response that cannot be used. Only its status can justify another request. Otherwise this throws.
  private func refused(
    _ response: DownloadResponse, _ error: CacheError, at position: Int64, _ reason: String
  ) throws(CacheError) -> RetryFailure {
    guard response.head.status != .ok, response.head.status != .partialContent else {
      attempts.giveUp(response)
      throw attempts.interruption(error, at: position, reason: reason)
    }
    let failure = attempts.failure(.success(response.head))
    let status = attempts.noteStatus(response.head)
    if case .retry = attempts.decision(on: failure) {
      attempts.discard(response)
      return failure
    }
    attempts.giveUp(response)
    // A transient status says nothing about the resource. Starting over would repeat the request that was just refused. The
    // body's own error is not thrown either, because a caller would retry it.
    guard !attempts.policy.statuses.contains(response.head.status.code) else { throw attempts.log.final(status) }
    throw attempts.interruption(error, at: position, reason: reason)
  }
}
