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
    let maximum = max(maximum, .zero)
    id = ComponentID(Self.self, "\(maximum)", around: base.id)
    self.base = base
    self.maximum = maximum
    self.clock = clock
  }

  /// The number of hosts that are remembered.
  package var pausedHosts: Int { pauses.count }

  package var preferredExecutor: (any TaskExecutor)? { base.preferredExecutor }

  package func download(_ request: DownloadRequest) async throws(CacheError) -> DownloadResponse {
    if Task.isCancelled { throw .cancelled }
    // The name of the host is not needed as long as no host is paused, as nearly always.
    if !pauses.isEmpty, let pause = pauses.pause(of: Self.host(of: request), at: clock.uptime) {
      let delay = pause.end - clock.uptime
      throw CacheError(
        .retryLater,
        reason: "no request was sent, because the server answered \(pause.status) before\(CacheError.retryHint(delay))",
        retryAfter: max(delay, .zero))
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

  private let pauses = Lock<[String: Pause]>([:])

  var count: Int { pauses.withLock { $0.count } }
  var isEmpty: Bool { pauses.withLock { $0.isEmpty } }

  /// Returns the pause of a host, or `nil` if it has none or if it is over.
  func pause(of host: String, at now: Duration) -> Pause? {
    pauses.withLock { pauses in
      guard let pause = pauses[host] else { return nil }
      guard pause.end > now else {
        pauses[host] = nil
        return nil
      }
      return pause
    }
  }

  /// Adds a pause. Of two pauses of one host, which the responses of simultaneous requests can ask for, the later end applies.
  func add(_ pause: Pause, of host: String, at now: Duration) {
    pauses.withLock { pauses in
      if let known = pauses[host] {
        if known.end < pause.end { pauses[host] = pause }
        return
      }
      if pauses.count >= Self.limit { pauses = pauses.filter { $0.value.end > now } }
      // The pause that ends first is the smallest loss.
      if pauses.count >= Self.limit, let first = pauses.min(by: { $0.value.end < $1.value.end }) { pauses[first.key] = nil }
      pauses[host] = pause
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
  ///   - maximum: The maximum pause. A longer delay is shortened to it, so that a faulty server cannot stop all further requests
  ///     to its host.
  ///   - clock: The clock for pauses and dates.
  public func respectingRetryAfter(
    upTo maximum: Duration = .seconds(3_600), clock: any CacheClock = SystemClock()
  ) -> some Downloader {
    RetryAfterDownloader(self, maximum: maximum, clock: clock)
  }
}
