public import CacheCore

/// The downloader that `rateLimited(perSecond:burst:clock:)` returns.
package struct RateLimitedDownloader: Downloader {
  package let id: ComponentID
  private let base: any Downloader
  private let clock: any CacheClock
  private let gate: RateLimitQueue
  private let validity: Result<Void, CacheError>

  package init(
    _ base: any Downloader, limit: RateLimit, clock: any CacheClock = SystemClock(),
    validity: Result<Void, CacheError> = .success(())
  ) {
    id = ComponentID(Self.self, "\(limit.perSecond) \(limit.burst)", around: base.id)
    self.base = base
    self.clock = clock
    gate = RateLimitQueue(limit, clock: clock)
    self.validity = validity
  }

  /// The number of waiting requests.
  package var waitingRequests: Int { gate.waiting }

  package var preferredExecutor: (any TaskExecutor)? { base.preferredExecutor }

  package func download(_ request: DownloadRequest) async throws(CacheError) -> DownloadResponse {
    try validity.get()
    let began = clock.uptime
    let gate = gate
    if !gate.passWithoutWaiting() {
      try await Deadline(limit: request.timeout, clock: clock, error: .overdue(request.timeout ?? .zero))
        .run { () async throws(CacheError) in try await gate.pass() }
    }
    let waited = clock.uptime - began
    return try await base.download(request.afterWaiting(waited)).queued(for: waited)
  }
}

extension Downloader {
  /// Returns this downloader with a request rate limit (a token bucket). Requests are sent in the order in which they arrive.
  ///
  /// In a list that scrolls, the first screens load at once and later ones at this rate. A request that is cancelled while it
  /// waits leaves at once and uses no token. A request's `timeout` includes the wait. If it waits longer, it fails with
  /// `CacheError.Code.timedOut`.
  ///
  /// ```swift
  /// let downloader = SessionDownloader().rateLimited(perSecond: 80, burst: 25)
  /// ```
  ///
  /// - Parameters:
  ///   - rate: The steady rate in requests per second, from 0.001 to 1,000,000,000. With another number, requests fail with
  ///     `CacheError.Code.invalidConfiguration`.
  ///   - burst: The number of requests that may be sent at once after a pause, from 1 to 1,000,000,000. With another number,
  ///     requests fail with `CacheError.Code.invalidConfiguration`.
  ///   - clock: The clock that fills the bucket.
  public func rateLimited(
    perSecond rate: Double, burst: Int = 1, clock: any CacheClock = SystemClock()
  ) -> some Downloader {
    RateLimitedDownloader(
      self, limit: RateLimit(perSecond: rate, burst: burst), clock: clock,
      validity: Result { () throws(CacheError) in try RateLimit.check(perSecond: rate, burst: burst) })
  }
}
