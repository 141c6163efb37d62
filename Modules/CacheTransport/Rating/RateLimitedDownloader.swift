public import CacheCore

/// The downloader that `rateLimited(perSecond:burst:clock:)` returns.
package struct RateLimitedDownloader: Downloader {
  package let id: ComponentID
  private let base: any Downloader
  private let clock: any CacheClock
  private let gate: RateLimitQueue

  package init(_ base: any Downloader, limit: RateLimit, clock: any CacheClock = SystemClock()) {
    id = ComponentID(Self.self, "\(limit.perSecond) \(limit.burst)", around: base.id)
    self.base = base
    self.clock = clock
    gate = RateLimitQueue(limit, clock: clock)
  }

  /// The number of requests that wait for their turn.
  package var waitingRequests: Int { gate.waiting }

  package var preferredExecutor: (any TaskExecutor)? { base.preferredExecutor }

  package func download(_ request: DownloadRequest) async throws(CacheError) -> DownloadResponse {
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
  /// Returns this downloader with a limited rate of requests (a token bucket). Requests are sent in the order in which they came.
  ///
  /// For a list that scrolls: the first screens are loaded at once, later ones at this rate. A request that is cancelled before
  /// its turn leaves at once and takes no token. A request's `timeout` includes the wait, and the request ends with
  /// `CacheError.Code.timedOut` if its time is over before its turn.
  ///
  /// ```swift
  /// let downloader = SessionDownloader().rateLimited(perSecond: 80, burst: 25)
  /// ```
  ///
  /// - Parameters:
  ///   - rate: requests per second in the long run, from 0.001 to 1,000,000,000. Another number is replaced by the nearest one.
  ///   - burst: requests at once after a pause, from 1 to 1,000,000,000. Another number is replaced by the nearest one.
  ///   - clock: fills the bucket.
  public func rateLimited(
    perSecond rate: Double, burst: Int = 1, clock: any CacheClock = SystemClock()
  ) -> some Downloader {
    RateLimitedDownloader(self, limit: RateLimit(perSecond: rate, burst: burst), clock: clock)
  }
}
