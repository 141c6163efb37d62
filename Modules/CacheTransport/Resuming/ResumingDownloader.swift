public import CacheCore
internal import HTTPTypes

/// The downloader that `resuming(_:clock:)` returns.
package struct ResumingDownloader: Downloader {
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
    var response: DownloadResponse
    switch try await attempts.send(request) {
    case .failure(let error): throw attempts.log.final(error)
    case .success(let received): response = received
    }
    let (log, body) = (attempts.log, response.body)
    guard body.data == nil,
      let plan = ResumptionPlan(request: request, head: response.head, length: body.length, now: clock.now)
    else { return response }
    response.metrics = { log.metrics }
    let source = RecoveringBody(
      body.source, length: plan.length, log: log, recovery: Resumption(attempts: attempts, plan: plan))
    response.body = ResourceBody(length: body.length, source: source)
    return response
  }
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
    ResumingDownloader(self, policy: policy, clock: clock)
  }
}
