public import CacheCore
internal import HTTPTypes

/// The downloader that `respectingRetryAfter(upTo:clock:)` returns.
package struct RetryAfterDownloader: Downloader {
  package let id: ComponentID
  private let base: any Downloader
  private let maximum: Duration
  private let clock: any CacheClock
  private let pauses = PauseTable()

  package init(_ base: any Downloader, maximum: Duration, clock: any CacheClock = SystemClock()) {
    id = ComponentID(Self.self, "\(maximum)", around: base.id)
    self.base = base
    self.maximum = maximum
    self.clock = clock
  }

  /// The number of hosts that are remembered.
  package var pausedHosts: Int { pauses.count }

  package var preferredExecutor: (any TaskExecutor)? { base.preferredExecutor }

  package func download(_ request: DownloadRequest) async throws(CacheError) -> DownloadResponse {
    try CacheError.require("upTo", maximum, in: .zero...)
    if Task.isCancelled { throw .cancelled }
    let now = clock.uptime
    // The name of the host is not needed as long as no host is paused, as nearly always.
    if pauses.hasPause(at: now), let pause = pauses.pause(of: Self.host(of: request), at: now) {
      let delay = pause.end - now
      throw CacheError(
        .retryLater,
        reason: "no request was sent, because the server responded with \(pause.status) before\(CacheError.retryHint(delay))",
        retryAfter: delay)
    }
    do throws(CacheError) {
      let response = try await base.download(request)
      note(response.head.status.code, response.head.headerFields.retryAfter(receivedAt: clock.now), request)
      return response
    } catch {
      // A downloader below, or one of its hooks, may have refused the response.
      if let status = error.status { note(status, error.retryAfter, request) }
      throw error
    }
  }

  private func note(_ status: Int, _ delay: Duration?, _ request: DownloadRequest) {
    guard status == 429 || status == 503, let delay, min(delay, maximum) > .zero else { return }
    let now = clock.uptime
    pauses.add(.init(status: status, end: now + min(delay, maximum)), of: Self.host(of: request), at: now)
  }

  private static func host(of request: DownloadRequest) -> String {
    "\(request.head.scheme?.lowercased() ?? "")://\(TransferHost.name(of: request.head))"
  }
}

/// The hosts that have asked for a pause. It holds a limited number, because a redirect can lead to any host.
final class PauseTable: Sendable {
  struct Pause {
    /// The status of the response that asked for the pause.
    var status: Int
    /// The uptime at which the pause ends.
    var end: Duration
  }

  /// The maximum number of hosts.
  static let limit = 1_024

  private struct State {
    var pauses: [String: Pause] = [:]
    /// The end of the pause that ends last.
    var end = Duration.zero
  }

  private let state = Lock(State())

  var count: Int { state.withLock { $0.pauses.count } }

  /// Returns whether a host may have a pause. Once all pauses are over, they are removed.
  func hasPause(at now: Duration) -> Bool {
    state.withLock { state in
      guard !state.pauses.isEmpty else { return false }
      if state.end <= now { state.pauses = [:] }
      return state.end > now
    }
  }

  /// Returns the pause of a host, or `nil` if it has none or if it is over.
  func pause(of host: String, at now: Duration) -> Pause? {
    state.withLock { $0.pauses[host] }.flatMap { $0.end > now ? $0 : nil }
  }

  /// Adds a pause. Of two pauses of one host, which the responses of simultaneous requests can ask for, the later end applies.
  func add(_ pause: Pause, of host: String, at now: Duration) {
    state.withLock { state in
      var pauses = state.pauses.filter { $0.value.end > now }
      if let known = pauses[host], known.end >= pause.end { return }
      // The pause that ends first is the smallest loss.
      if pauses.count >= Self.limit, pauses[host] == nil, let first = pauses.min(by: { $0.value.end < $1.value.end }) {
        pauses[first.key] = nil
      }
      pauses[host] = pause
      state.pauses = pauses
      state.end = max(state.end, pause.end)
    }
  }
}

extension Downloader {
  /// Returns this downloader with pauses that servers ask for. After a response with the status 429 or 503 and `Retry-After`
  /// (RFC 9110 §10.2.3), it sends no request to that host until the delay has passed.
  ///
  /// Meanwhile, requests fail at once with `CacheError.Code.retryLater`, and `CacheError.retryAfter` is the rest of the delay. A
  /// manager then serves a stored response as if the server were unreachable, also a stale one (RFC 9111 §4.2.4). The response
  /// that asked for the pause is returned unchanged. A response without a valid `Retry-After` causes no pause.
  ///
  /// ```swift
  /// let downloader = SessionDownloader().respectingRetryAfter().resuming().retrying()
  /// ```
  ///
  /// A host is a scheme, a name and a port. The pauses of up to 1,024 hosts are in memory, and they belong to this downloader.
  /// Add the wrapper inside limits and retries. It then sees every response, and decides just before a request is sent.
  ///
  /// - Parameters:
  ///   - maximum: The maximum pause, at least zero. A longer delay is shortened to it, so that a faulty server cannot stop all
  ///     further requests to its host. With a negative duration, requests fail with `CacheError.Code.invalidConfiguration`.
  ///   - clock: The clock for pauses and dates.
  public func respectingRetryAfter(
    upTo maximum: Duration = .seconds(3_600), clock: any CacheClock = SystemClock()
  ) -> some Downloader {
    RetryAfterDownloader(self, maximum: maximum, clock: clock)
  }
}
