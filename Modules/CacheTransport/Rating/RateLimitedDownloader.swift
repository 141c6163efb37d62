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

/// A queue of requests that wait for a token, first in, first out.
///
/// The first waiter sleeps on the clock, and the others wait for it. A cancelled waiter leaves without a token.
final class RateLimitQueue: Sendable {
  private enum Outcome { case first, cancelled }

  private struct State {
    var bucket: TokenBucket
    var hasFirst = false
    var nextTicket: UInt64 = 0
    var tickets = IndexedHeap<UInt64, UInt64>()
    var waiting: [UInt64: CheckedContinuation<Outcome, Never>] = [:]
  }

  private let state: Lock<State>
  private let clock: any CacheClock

  init(_ limit: RateLimit, clock: any CacheClock) {
    state = Lock(State(bucket: TokenBucket(limit)))
    self.clock = clock
  }

  /// The number of waiters, including the first.
  var waiting: Int { state.withLock { $0.waiting.count + ($0.hasFirst ? 1 : 0) } }

  /// Takes a token without waiting. Returns `false` if the request must wait or its task was cancelled.
  func passWithoutWaiting() -> Bool {
    if Task.isCancelled { return false }
    let now = clock.uptime
    return state.withLock { state in
      guard !state.hasFirst else { return false }
      return state.bucket.take(at: now)
    }
  }

  /// Waits for a token.
  func pass() async throws(CacheError) {
    if Task.isCancelled { throw .cancelled }
    enum Entry { case passes, first, waits(UInt64) }
    let now = clock.uptime
    let entry: Entry = state.withLock { state in
      guard !state.hasFirst else {
        state.nextTicket += 1
        return .waits(state.nextTicket)
      }
      if state.bucket.take(at: now) { return .passes }
      state.hasFirst = true
      return .first
    }
    switch entry {
    case .passes: return
    case .first: try await lead()
    case .waits(let ticket):
      guard await waitForTurn(ticket) == .first else { throw .cancelled }
      try await lead()
    }
  }

  /// Waits for the next token as the first waiter, then wakes the next one.
  private func lead() async throws(CacheError) {
    defer { step() }
    while true {
      if Task.isCancelled { throw .cancelled }
      let now = clock.uptime
      let delay = state.withLock { $0.bucket.take(at: now) ? .zero : $0.bucket.delay(at: now) }
      guard delay > .zero else { return }
      do throws(CancellationError) {
        try await clock.sleep(for: delay)
      } catch {
        throw .cancelled
      }
    }
  }

  private func step() {
    let next: CheckedContinuation<Outcome, Never>? = state.withLock { state in
      guard let ticket = state.tickets.first?.member else {
        state.hasFirst = false
        return nil
      }
      state.tickets.remove(ticket)
      return state.waiting.removeValue(forKey: ticket)
    }
    next?.resume(returning: .first)
  }

  private func waitForTurn(_ ticket: UInt64) async -> Outcome {
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let outcome: Outcome? = state.withLock { state in
          if Task.isCancelled { return .cancelled }
          // The queue may have become empty since the ticket was drawn.
          guard state.hasFirst else {
            state.hasFirst = true
            return .first
          }
          state.tickets.set(ticket, ticket)
          state.waiting[ticket] = continuation
          return nil
        }
        if let outcome { continuation.resume(returning: outcome) }
      }
    } onCancel: {
      let waiter = state.withLock { state in
        state.tickets.remove(ticket)
        return state.waiting.removeValue(forKey: ticket)
      }
      waiter?.resume(returning: .cancelled)
    }
  }
}
