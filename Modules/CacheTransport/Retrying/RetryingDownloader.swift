public import CacheCore
internal import HTTPTypes

/// The downloader that `retrying(_:clock:)` returns.
package struct RetryingDownloader: Downloader {
  package let id: ComponentID
  package let base: any Downloader
  package let policy: RetryPolicy

  private let clock: any CacheClock

  package init(_ base: any Downloader, policy: RetryPolicy = .standard, clock: any CacheClock = SystemClock()) {
    id = policy.id(of: Self.self, around: base)
    self.base = base
    self.policy = policy
    self.clock = clock
  }

  package var preferredExecutor: (any TaskExecutor)? { base.preferredExecutor }

  package func download(_ request: DownloadRequest) async throws(CacheError) -> DownloadResponse {
    let attempts = RetryLoop(base: base, policy: policy, clock: clock, request: request)
    var response = try await attempts.answer()
    let (log, body) = (attempts.log, response.body)
    response.metrics = { log.metrics }
    guard body.data == nil, body.length != 0 else { return response }
    let source = RecoveringBody(
      body.source, length: nil, log: log,
      recovery: TransparentRetry(attempts: attempts, head: response.head, length: body.length))
    response.body = ResourceBody(length: body.length, source: source)
    return response
  }
}

extension Downloader {
  /// Returns this downloader with retries: a request is sent again if it fails, or if its response has a status of the moment
  /// only, such as 503.
  ///
  /// - When the attempts are used up, the last response is returned, whatever its status. An error is the last one, with
  ///   `CacheError.attempt` set. After several attempts, its `underlying` is a `FailureHistory` of all errors.
  /// - A body that fails before its first byte was read is requested again, if the new head describes the same content. A body
  ///   that fails later throws `CacheError.Code.bodyInterrupted` if the policy allows another attempt, otherwise its own error.
  ///   Only the caller can start over then, with `DownloadRequest.attempt` one above the error's.
  /// - Waits end at once when the task or the body is cancelled.
  /// - All attempts share the time that the request allows (`DownloadRequest.timeout`).
  ///
  /// Put retries around `resuming(_:clock:)`, so that a body is first continued and only then requested again.
  ///
  /// ```swift
  /// let downloader = SessionDownloader().resuming().retrying(.standard)
  /// ```
  ///
  /// - Parameters:
  ///   - policy: the rules for retries.
  ///   - clock: measures waits and dates.
  public func retrying(_ policy: RetryPolicy = .standard, clock: any CacheClock = SystemClock()) -> some Downloader {
    RetryingDownloader(self, policy: policy, clock: clock)
  }
}

extension RetryLoop {
  /// The first answer that is worth handing over.
  ///
  /// - Parameter broken: a body that broke, after which the next request is already the second.
  func answer(after broken: CacheError? = nil) async throws(CacheError) -> DownloadResponse {
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

  /// The request to be sent now, after its wait; nil: the failure is final.
  private func request(after error: CacheError) async throws(CacheError) -> DownloadRequest? {
    let failure = failure(.failure(error))
    guard case .retry(let delay) = decision(on: failure), let next = try await repeated() else { return nil }
    return try await wait(delay, after: failure) ? next : nil
  }

  /// The request to be sent now, after its wait, the answer given back; nil: the answer is to be handed over.
  private func request(after response: DownloadResponse) async throws(CacheError) -> DownloadRequest? {
    guard policy.mayRetry(response.head) else { return nil }
    let failure = failure(.success(response.head))
    guard case .retry(let delay) = decision(on: failure), let next = try await repeated() else { return nil }
    noteStatus(response.head)
    discard(response)
    // Who has got an answer has a network: the wait is one for time alone.
    _ = try await wait(delay, after: failure)
    return next
  }
}
