public import CacheCore

/// A downloader that sends requests at a limited rate, in the order in which they came.
///
/// ```swift
/// let downloader = SessionDownloader().rateLimited(RateLimit(perSecond: 80, burst: 25))
/// ```
///
/// A request that is cancelled before its turn leaves at once and takes no token. A request's `timeout` counts the wait.
public struct RateLimitedDownloader: Downloader {
  public let id: ComponentID
  /// How many in a second, and how many at once.
  public let limit: RateLimit
  private let base: any Downloader
  private let clock: any CacheClock
  private let gate: RateLimitQueue

  /// A downloader with a bucket of its own; copies share it.
  ///
  /// - Parameters:
  ///   - base: who transfers.
  ///   - limit: how many in a second, and how many at once.
  ///   - clock: fills the bucket.
  public init(_ base: any Downloader, limit: RateLimit, clock: any CacheClock = SystemClock()) {
    id = ComponentID(Self.self, "\(limit.perSecond) \(limit.burst)", around: base.id)
    self.base = base
    self.limit = limit
    self.clock = clock
    gate = RateLimitQueue(limit, clock: clock)
  }

  /// Requests that wait for their turn.
  public var waitingRequests: Int { gate.waiting }

  public var preferredExecutor: (any TaskExecutor)? { base.preferredExecutor }

  /// - Throws: `CacheError.Code.timedOut` when the request's time is over before its turn, else what the wrapped downloader
  ///   throws.
  public func download(_ request: DownloadRequest) async throws(CacheError) -> DownloadResponse {
    let began = clock.uptime
    let gate = gate
    if !gate.passAtOnce() {
      try await Deadline(limit: request.timeout, clock: clock, error: .overdue(request.timeout ?? .zero))
        .run { () async throws(CacheError) in try await gate.pass() }
    }
    let waited = clock.uptime - began
    return try await base.download(request.afterWaiting(waited)).queued(for: waited)
  }
}

extension Downloader {
  /// This downloader, at a limited rate.
  ///
  /// - Parameters:
  ///   - limit: how many requests in a second, and how many at once.
  ///   - clock: fills the bucket.
  public func rateLimited(_ limit: RateLimit, clock: any CacheClock = SystemClock()) -> RateLimitedDownloader {
    RateLimitedDownloader(self, limit: limit, clock: clock)
  }
}
