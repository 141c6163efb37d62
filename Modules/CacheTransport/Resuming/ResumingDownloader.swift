public import CacheCore
internal import HTTPTypes

/// A downloader that continues a body which breaks: with a request for the rest, as long as it is sure that the rest belongs to
/// what is there.
///
/// ```swift
/// let downloader = SessionDownloader().resuming().retrying(.standard)
/// ```
///
/// The rest is asked for with `Range` and `If-Range` (RFC 9110 §14.2, §13.1.5), at once for the first time and after the policy's
/// waits from then on, from the byte that the reader has come to, however often. It is joined only when status, `Content-Range`,
/// length, content coding and validator agree; a 200 that is the same by its validator is read past what is there already.
/// Everything else throws `CacheError.Code.bodyInterrupted` when the policy has another attempt to give, else what broke the
/// body.
///
/// What is continued is the 200 answer to a GET without `Range`, with a `Content-Length` and a strong validator: an entity tag
/// without `W/`, or, where there is no tag, a `Last-Modified` a minute before the answer's `Date`. Not where the server says
/// `Accept-Ranges: none`, and not where an engine below has decoded the bytes. All other answers pass as they are.
///
/// The first request is not repeated here: that is ``RetryingDownloader``'s, around this one. Both count requests by
/// `DownloadRequest.attempt`, so a body continued three times has used up what a policy of four attempts gives.
public struct ResumingDownloader: Downloader {
  /// Equal for equal policies around equal downloaders, where the policy has neither closures of its caller's nor a network.
  public let id: ComponentID
  /// Whom it asks.
  public let base: any Downloader
  /// How often, and after which waits, the rest is asked for.
  public let policy: RetryPolicy

  private let clock: any CacheClock

  /// A downloader around another.
  ///
  /// - Parameters:
  ///   - base: whom it asks; held strongly, by bodies too, until they have ended.
  ///   - policy: how often, and after which waits, the rest is asked for.
  ///   - clock: for waits and dates.
  public init(_ base: any Downloader, policy: RetryPolicy = .standard, clock: any CacheClock = SystemClock()) {
    id = policy.id(of: Self.self, around: base)
    self.base = base
    self.policy = policy
    self.clock = clock
  }

  public var preferredExecutor: (any TaskExecutor)? { base.preferredExecutor }

  /// Sends the request once, and returns at the head.
  public func download(_ request: DownloadRequest) async throws(CacheError) -> DownloadResponse {
    let attempts = RetryLoop(base: base, policy: policy, clock: clock, request: request)
    var response: DownloadResponse
    switch try await attempts.send(request) {
    case .failure(let error): throw attempts.log.final(error)
    case .success(let answer): response = answer
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
  /// This downloader, continuing bodies that break; see ``ResumingDownloader``.
  ///
  /// - Parameters:
  ///   - policy: how often, and after which waits, the rest is asked for.
  ///   - clock: for waits and dates.
  public func resuming(_ policy: RetryPolicy = .standard, clock: any CacheClock = SystemClock()) -> ResumingDownloader {
    ResumingDownloader(self, policy: policy, clock: clock)
  }
}
