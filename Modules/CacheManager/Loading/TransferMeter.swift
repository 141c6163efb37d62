internal import CacheCore

/// Measures the transfers of one load from all its sources, including those that failed.
final class TransferMeter: Sendable {
  private struct State {
    /// The metrics of the responses. Their bodies may still be on their way.
    var answers: [@Sendable () -> TransferMetrics] = []
    /// The number of requests without a response.
    var unanswered = 0
  }

  private let clock: any CacheClock
  private let startedAt: Duration
  private let state = Lock(State())

  init(_ clock: any CacheClock) {
    self.clock = clock
    startedAt = clock.uptime
  }

  /// Returns the same request with a downloader that is measured here.
  func metering(_ load: ResolvedRequest) -> ResolvedRequest {
    guard let downloader = load.downloader else { return load }
    return load.with { $0.downloader = MeteredDownloader(base: downloader, account: self) }
  }

  /// The cost of all transfers so far: counts, and the time since the load began.
  var spent: TransferMetrics {
    let (answers, unanswered) = state.withLock { ($0.answers, $0.unanswered) }
    // Outside the lock, because the closures are the engine's.
    var spent = answers.reduce(TransferMetrics.nothing) { spent, measured in
      var metrics = measured()
      metrics.attempts = max(1, metrics.attempts)
      return spent.followed(by: metrics)
    }
    spent.attempts += unanswered
    if spent.attempts > 0 { spent.total = clock.uptime - startedAt }
    return spent
  }

  fileprivate func note(_ response: DownloadResponse) { state.withLock { $0.answers.append(response.metrics) } }

  fileprivate func note(_ error: CacheError, attempt: Int) {
    guard !Self.unsent.contains(error.code) else { return }
    let sent = max(1, (error.attempt ?? attempt) - attempt + 1)
    state.withLock { $0.unanswered += sent }
  }

  /// The errors for which no request was sent.
  private static let unsent: Set<CacheError.Code> = [.networkRestricted, .unsupportedScheme, .invalidURL]
}

/// A downloader whose requests are measured.
private struct MeteredDownloader: Downloader {
  let base: any Downloader
  let account: TransferMeter

  var id: ComponentID { base.id }
  var preferredExecutor: (any TaskExecutor)? { base.preferredExecutor }

  func download(_ request: DownloadRequest) async throws(CacheError) -> DownloadResponse {
    do throws(CacheError) {
      let response = try await base.download(request)
      account.note(response)
      return response
    } catch {
      account.note(error, attempt: request.attempt)
      throw error
    }
  }
}
