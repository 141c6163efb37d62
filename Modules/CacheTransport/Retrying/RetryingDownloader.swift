public import CacheCore
internal import HTTPTypes

/// A downloader that asks again, as a ``RetryPolicy`` has it, when no answer comes, or one that speaks of the moment only (503,
/// say).
///
/// ```swift
/// let downloader = SessionDownloader().resuming().retrying(.standard)
/// ```
///
/// - When the attempts are used up, the last answer is returned as it is, whatever its status: statuses are answers. An error
///   that is thrown is the last one, with `CacheError.attempt` set; when there were several, its `underlying` is a
///   ``RetryHistory`` of all.
/// - A body that breaks before its first byte was handed over is asked for again, without a trace, if the new head says the same
///   of its content. One that breaks later throws `CacheError.Code.bodyInterrupted` when the policy has another attempt to give,
///   else what broke it: only who has the bytes can start over, with `DownloadRequest.attempt` one above the error's.
/// - Waits end at once when the task, or the body, is cancelled.
/// - Retries of a request that allows so much time (`DownloadRequest.timeout`) share it; what is left is the next request's.
///
/// Put it around ``ResumingDownloader``, so that a body is first continued and only then asked for again.
public struct RetryingDownloader: Downloader {
  /// Equal for equal policies around equal downloaders, where the policy has neither closures of its caller's nor a network.
  public let id: ComponentID
  /// Whom it asks.
  public let base: any Downloader
  /// When it asks again.
  public let policy: RetryPolicy

  private let clock: any CacheClock

  /// A downloader around another.
  ///
  /// - Parameters:
  ///   - base: whom it asks; held strongly, by bodies too, until they have ended.
  ///   - policy: when it asks again.
  ///   - clock: for waits and dates.
  public init(_ base: any Downloader, policy: RetryPolicy = .standard, clock: any CacheClock = SystemClock()) {
    id = policy.id(of: Self.self, around: base)
    self.base = base
    self.policy = policy
    self.clock = clock
  }

  public var preferredExecutor: (any TaskExecutor)? { base.preferredExecutor }

  /// Sends the request until there is an answer worth returning, or a failure that is final.
  public func download(_ request: DownloadRequest) async throws(CacheError) -> DownloadResponse {
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
  /// This downloader, asking again as `policy` has it; see ``RetryingDownloader``.
  ///
  /// - Parameters:
  ///   - policy: when it asks again.
  ///   - clock: for waits and dates.
  public func retrying(_ policy: RetryPolicy = .standard, clock: any CacheClock = SystemClock()) -> RetryingDownloader {
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
    let failure = failure(.error(error))
    guard case .retry(let delay) = decision(on: failure), let next = try await repeated() else { return nil }
    return try await wait(delay, after: failure) ? next : nil
  }

  /// The request to be sent now, after its wait, the answer given back; nil: the answer is to be handed over.
  private func request(after response: DownloadResponse) async throws(CacheError) -> DownloadRequest? {
    guard policy.mayRetry(response.head) else { return nil }
    let failure = failure(.answer(response.head))
    guard case .retry(let delay) = decision(on: failure), let next = try await repeated() else { return nil }
    noteStatus(response.head)
    discard(response)
    // Who has got an answer has a network: the wait is one for time alone.
    _ = try await wait(delay, after: failure)
    return next
  }
}
