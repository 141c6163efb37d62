public import CacheCore
internal import HTTPTypes

/// The downloader that `retrying(_:clock:)` returns.
package struct RetryingDownloader: Downloader {
  package let id: ComponentID
  package let base: any Downloader
  package let policy: RetryPolicy

  private let clock: any CacheClock
  private let validity: Result<Void, CacheError>

  package init(_ base: any Downloader, policy: RetryPolicy = .standard, clock: any CacheClock = SystemClock()) {
    id = policy.id(of: Self.self, around: base)
    self.base = base
    self.policy = policy
    self.clock = clock
    validity = Result(catching: policy.check)
  }

  package var preferredExecutor: (any TaskExecutor)? { base.preferredExecutor }

  package func download(_ request: DownloadRequest) async throws(CacheError) -> DownloadResponse {
    try validity.get()
    let attempts = RetryLoop(base: base, policy: policy, clock: clock, request: request)
    var response = try await attempts.nextResponse()
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
    RetryingDownloader(self, policy: policy, clock: clock)
  }
}

extension RetryLoop {
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
