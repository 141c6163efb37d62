public import CacheCore
internal import HTTPTypes
internal import Synchronization

/// The downloader that `retrying(_:clock:)` and `resuming(_:clock:)` return.
package struct RecoveringDownloader: Downloader {
  package let id: ComponentID
  package let base: any Downloader
  package let policy: RetryPolicy
  /// Whether the rest of a failed body is requested, instead of the whole response.
  package let resumes: Bool

  private let clock: any CacheClock

  package init(
    _ base: any Downloader, policy: RetryPolicy = .standard, resumes: Bool = false, clock: any CacheClock = SystemClock()
  ) {
    id = policy.id(of: Self.self, resumes: resumes, around: base)
    self.base = base
    self.policy = policy
    self.resumes = resumes
    self.clock = clock
  }

  package var preferredExecutor: (any TaskExecutor)? { base.preferredExecutor }

  package func download(_ request: DownloadRequest) async throws(CacheError) -> DownloadResponse {
    try policy.check()
    let attempts = RetryLoop(base: base, policy: policy, clock: clock, request: request)
    return resumes ? try await attempts.resumableResponse() : try await attempts.retriedResponse()
  }
}

extension Downloader {
  /// Returns this downloader with retries: a request is sent again if it fails or if its response has a transient status, such as
  /// 503.
  ///
  /// - After the last attempt, the last response is returned, regardless of its status, or the last error is thrown, with
  ///   `CacheError.attempt` set. After several failures, its `underlying` is a `FailureHistory` of all errors.
  /// - A body that fails before its first byte was read is requested again. The new one is used if its head describes the same
  ///   content. A body that fails later throws `CacheError.Code.bodyInterrupted` if the policy allows another attempt, otherwise
  ///   its own error. Only the caller can start over then, with a `DownloadRequest.attempt` one above the error's.
  /// - Delays end at once when the task or the body is cancelled.
  /// - All attempts share the request's time limit (`DownloadRequest.timeout`).
  ///
  /// Add retries around `resuming(_:clock:)`, so that a body is first resumed and only then requested again.
  ///
  /// ```swift
  /// let downloader = SessionDownloader().resuming().retrying(.standard)
  /// ```
  ///
  /// - Parameters:
  ///   - policy: The rules for retries.
  ///   - clock: The clock for delays and dates.
  public func retrying(_ policy: RetryPolicy = .standard, clock: any CacheClock = SystemClock()) -> some Downloader {
    RecoveringDownloader(self, policy: policy, clock: clock)
  }
}

extension RetryLoop {
  /// Returns a response whose body is requested again if it fails before its first byte.
  fileprivate func retriedResponse() async throws(CacheError) -> DownloadResponse {
    var response = try await nextResponse()
    let (log, body) = (log, response.body)
    response.metrics = { log.metrics }
    guard body.data == nil, body.length != 0 else { return response }
    let source = RecoveringBody(
      body.source, length: nil, log: log,
      recovery: TransparentRetry(attempts: afterHead, head: response.head, length: body.length))
    response.body = ResourceBody(length: body.length, source: source)
    return response
  }

  /// Sends requests until the policy accepts a response.
  ///
  /// - Parameter broken: The error of a failed body, so that the next request is already the second.
  func nextResponse(after broken: CacheError? = nil) async throws(CacheError) -> DownloadResponse {
    defer { drain.end() }
    var result: Result<DownloadResponse, CacheError>
    if let broken { result = .failure(broken) } else { result = try await send(request) }
    while true {
      let next: DownloadRequest?
      switch result {
      case .success(let response): next = try await request(after: response)
      case .failure(let error): next = try await request(after: error)
      }
      if let next {
        result = try await send(next)
      } else if case .success(let response) = result {
        return response
      } else if case .failure(let error) = result {
        throw log.final(error)
      }
    }
  }

  /// Returns the next request after its delay, or `nil` if the failure is final.
  private func request(after error: CacheError) async throws(CacheError) -> DownloadRequest? {
    let failure = failure(.failure(error))
    guard case .retry(let delay) = decision(on: failure), let next = try await repeated() else { return nil }
    return try await wait(delay, after: failure) ? next : nil
  }

  /// Discards a response and returns the next request after its delay, or returns `nil` if the response is final.
  private func request(after response: DownloadResponse) async throws(CacheError) -> DownloadRequest? {
    guard policy.mayRetry(response.head) else { return nil }
    let failure = failure(.success(response.head))
    guard case .retry(let delay) = decision(on: failure), let next = try await repeated() else { return nil }
    noteStatus(response.head)
    discard(response)
    // A response proves that a network is available, so only the delay is waited for.
    _ = try await wait(delay, after: failure)
    return next
  }
}

/// The recovery that requests a body again, if none of it was returned yet.
struct TransparentRetry: BodyRecovery {
  let attempts: RetryLoop
  /// The head that was returned.
  let head: HTTPResponse
  /// The announced length of its body in bytes, or `nil` if it is unknown.
  let length: Int64?

  func continuation(after error: CacheError, at position: Int64) async throws(CacheError) -> Continuation {
    attempts.log.close(isCounted: true)
    attempts.log.note(error)
    guard position == 0 else { throw attempts.interruption(error, at: position) }
    let response = try await attempts.nextResponse(after: RetryLoop.original(of: error))
    // A body that arrives whole has a length, also if none was announced.
    guard Self.describesSameContent(head, response.head), length == nil || length == response.body.length else {
      attempts.giveUp(response)
      // A transient status says nothing about the resource. Starting over would repeat the request that was just refused.
      guard !attempts.policy.statuses.contains(response.head.status.code) || response.head.status == head.status else {
        throw attempts.log.final(attempts.noteStatus(response.head))
      }
      throw attempts.interruption(error, at: position, reason: "the resource has changed")
    }
    return .bytes(response.body.source, skipping: 0)
  }

  /// Returns whether the first head also describes the body of the second response.
  ///
  /// The reader has only the first head, so its labels and its caching rules must hold for the new bytes.
  static func describesSameContent(_ first: HTTPResponse, _ second: HTTPResponse) -> Bool {
    first.status == second.status && labels.allSatisfy { first.headerFields[$0] == second.headerFields[$0] }
  }

  private static let labels: [HTTPField.Name] = [
    .eTag, .lastModified, .contentLength, .contentEncoding, .contentType, .contentRange, .contentLanguage, .contentLocation,
    .cacheControl, .vary, .setCookie,
  ]
}

extension Downloader {
  /// Returns this downloader with resumption: if a body fails, the rest of it is requested.
  ///
  /// The rest is requested with `Range` and `If-Range` (RFC 9110 §14.2, §13.1.5), from the reader's position. The first such
  /// request is sent at once, later ones after the policy's delays. The rest is used only if status, `Content-Range`, length,
  /// content coding and validator match. A 200 with the same validator is skipped up to the reader's position. Otherwise the body
  /// throws `CacheError.Code.bodyInterrupted` if the policy allows another attempt, or else its original error.
  ///
  /// Only the 200 response to a GET without `Range` is resumed. It needs a `Content-Length` and a strong validator: an entity tag
  /// without `W/`, or, without a tag, a `Last-Modified` at least a minute before `Date`. A response is not resumed if the server
  /// sends `Accept-Ranges: none` or if an engine below has decoded the bytes.
  ///
  /// This downloader does not repeat the first request. Add `retrying(_:clock:)` around it for that. Both count requests with
  /// `DownloadRequest.attempt`, so a body that was resumed three times has used up a policy of four attempts.
  ///
  /// ```swift
  /// let downloader = SessionDownloader().resuming().retrying(.standard)
  /// ```
  ///
  /// - Parameters:
  ///   - policy: The rules for further requests.
  ///   - clock: The clock for delays and dates.
  public func resuming(_ policy: RetryPolicy = .standard, clock: any CacheClock = SystemClock()) -> some Downloader {
    RecoveringDownloader(self, policy: policy, resumes: true, clock: clock)
  }
}

extension RetryLoop {
  /// Returns a response whose body is resumed if it fails.
  fileprivate func resumableResponse() async throws(CacheError) -> DownloadResponse {
    var response: DownloadResponse
    switch try await send(request) {
    case .failure(let error): throw log.final(error)
    case .success(let received): response = received
    }
    let (log, body) = (log, response.body)
    guard body.data == nil,
      let plan = ResumptionPlan(request: request, head: response.head, length: body.length, now: clock.now)
    else { return response }
    response.metrics = { log.metrics }
    let source = RecoveringBody(
      body.source, length: plan.length, log: log, recovery: BodyResumption(attempts: afterHead, plan: plan))
    response.body = ResourceBody(length: body.length, source: source)
    return response
  }
}

/// The recovery that resumes a failed body. It requests the rest until it can be used, must not be used, or the policy gives up.
final class BodyResumption: BodyRecovery {
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
