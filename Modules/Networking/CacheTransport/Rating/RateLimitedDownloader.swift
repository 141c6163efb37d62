public import CacheCore

/// The downloader that `rateLimited(perSecond:burst:clock:)` returns.
package final class RateLimitedDownloader: Downloader {
  package let id: ComponentID
  private let base: any Downloader
  private let clock: any CacheClock
  /// The slot of the request that takes the next token. The others wait for it in the order of arrival.
  private let gate = TransferGate(TransferLimits(total: 1))
  private let bucket: Lock<TokenBucket>
  private let validity: Result<Void, CacheError>

  package init(
    _ base: any Downloader, limit: RateLimit, clock: any CacheClock = SystemClock(),
    validity: Result<Void, CacheError> = .success(())
  ) {
    id = ComponentID(Self.self, "\(limit.perSecond) \(limit.burst)", around: base.id)
    self.base = base
    self.clock = clock
    bucket = Lock(TokenBucket(limit))
    self.validity = validity
  }

  /// The number of waiting requests.
  package var waitingRequests: Int { gate.waiting + gate.active }

  package var preferredExecutor: (any TaskExecutor)? { base.preferredExecutor }

  package func download(_ request: DownloadRequest) async throws(CacheError) -> DownloadResponse {
    try validity.get()
    let began = clock.uptime
    if !takeWithoutWaiting() {
      try await Deadline(limit: request.timeout, clock: clock, error: .overdue(request.timeout ?? .zero))
        .run { [self] () async throws(CacheError) in try await take() }
    }
    let waited = clock.uptime - began
    return try await base.download(request.afterWaiting(waited)).queued(for: waited)
  }

  /// Takes a token without waiting. Returns `false` if the request must wait or its task was cancelled.
  private func takeWithoutWaiting() -> Bool {
    // Requests that wait are first. One of them has the slot.
    guard !Task.isCancelled, gate.active == 0 else { return false }
    let now = clock.uptime
    return bucket.withLock { $0.take(at: now) }
  }

  /// Waits for a token. The first waiter sleeps on the clock. A cancelled waiter leaves without a token.
  private func take() async throws(CacheError) {
    // Waiters of equal priority get the slot in the order of arrival.
    let slot = try await gate.enter(host: "", priority: LoadPriority())
    defer { slot.release() }
    while true {
      if Task.isCancelled { throw .cancelled }
      let now = clock.uptime
      let delay = bucket.withLock { $0.take(at: now) ? .zero : $0.delay(at: now) }
      guard delay > .zero else { return }
      do throws(CancellationError) {
        try await clock.sleep(for: delay)
      } catch {
        throw .cancelled
      }
    }
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
  public func rateLimited(perSecond rate: Double, burst: Int = 1, clock: any CacheClock = SystemClock()) -> some Downloader {
    RateLimitedDownloader(
      self, limit: RateLimit(perSecond: rate, burst: burst), clock: clock,
      validity: Result { () throws(CacheError) in try RateLimit.check(perSecond: rate, burst: burst) })
  }
}

/// The parameters of a token bucket.
package struct RateLimit: Hashable, Sendable {
  /// The steady rate in requests per second.
  let perSecond: Double
  /// The number of requests that may be sent at once after a pause, at least 1.
  let burst: Int

  private static let rates = 0.001...1e9
  // The upper bound keeps the fill time of a bucket within the range of `Duration`, which traps on overflow.
  private static let bursts = 1...1_000_000_000

  /// Throws `CacheError.Code.invalidConfiguration` if one of the numbers is out of range.
  package static func check(perSecond: Double, burst: Int) throws(CacheError) {
    try CacheError.require("perSecond", perSecond, in: rates)
    try CacheError.require("burst", burst, in: bursts)
  }

  /// Creates a rate. A number out of range is replaced by the nearest valid one.
  package init(perSecond: Double, burst: Int = 1) {
    self.perSecond = perSecond > Self.rates.lowerBound ? min(perSecond, Self.rates.upperBound) : Self.rates.lowerBound
    self.burst = min(max(burst, Self.bursts.lowerBound), Self.bursts.upperBound)
  }

  /// The time between two requests at the steady rate.
  var interval: Duration { .nanoseconds(Int64((1e9 / perSecond).rounded(.up))) }
}

/// The decisions of a ``RateLimit``, without waiting.
///
/// The state is the time at which the bucket will be full (the generic cell rate algorithm of ITU-T I.371). It needs no token
/// count and loses no fractions.
package struct TokenBucket {
  private let interval: Duration
  private let depth: Duration
  private var fullAt: Duration?

  package init(_ limit: RateLimit) {
    interval = limit.interval
    depth = limit.interval * limit.burst
  }

  /// Returns the time until a token is available, or zero if there is one.
  package func delay(at now: Duration) -> Duration {
    guard let fullAt else { return .zero }
    return max(.zero, fullAt + interval - depth - now)
  }

  /// Takes a token if there is one.
  package mutating func take(at now: Duration) -> Bool {
    guard delay(at: now) == .zero else { return false }
    fullAt = max(fullAt ?? now, now) + interval
    return true
  }

  /// Whether no token is taken, so that the bucket equals a new one.
  package func isFull(at now: Duration) -> Bool { fullAt.map { $0 <= now } ?? true }
}
