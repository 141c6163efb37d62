internal import CacheCore
internal import HTTPTypes

/// Loads the original and then its alternatives in order, until one of them succeeds.
extension LoadOperation {
  func tryingAlternatives() async throws(CacheError) -> Exchange {
    var failures: [CacheError] = []
    var fallback: Exchange?
    let account = TransferMeter(request.clock)
    do throws(CacheError) {
      let original = try await fetch(account.metering(self.original))
      guard let failure = original.fallbackReason, Self.isWorthAnother(failure) else { return original }
      // A response of another source is better than a stored one that cannot be confirmed.
      fallback = original
      // The bodies of the alternatives must not wait for its memory.
      original.reservation?.release()
      failures.append(failure.about(request.address))
    } catch {
      guard Self.isWorthAnother(error), !isAboutTarget(error) else { throw error }
      failures.append(error.about(request.address))
    }
    for alternative in request.alternatives {
      guard !alternative.alternative.isLowData || failures.contains(where: { $0.code == .networkRestricted }) else { continue }
      if Task.isCancelled { throw .cancelled }
      do throws(CacheError) {
        let spent = account.spent
        return try await load(alternative, account).with { $0.metrics = spent.followed(by: $0.metrics) }
      } catch {
        if error.isCancellation || isAboutTarget(error) { throw error }
        failures.append(error.about(alternative.alternative.url.address))
      }
    }
    if let fallback, let whole = try await whole(fallback) { return whole.with { $0.metrics = account.spent } }
    throw Self.error(of: failures)
  }

  /// Returns the stored response that replaces the original after all alternatives have failed, or `nil` if it was removed.
  ///
  /// The response is copied into the caller's file again, because alternatives may have left bytes in the file.
  private func whole(_ fallback: Exchange) async throws(CacheError) -> Exchange? {
    guard case .file = request.destination else { return fallback }
    let cache = TieredCache(request, resource: fallback.key.resource)
    let candidate = Candidate(key: fallback.key, metadata: fallback.metadata)
    guard let content = try await cache.content(of: candidate) else { return nil }
    return fallback.with { $0.source = content.source }
  }

  /// The request for the original. It does not use constrained networks if there is a low-data alternative.
  private var original: ResolvedRequest {
    guard request.alternatives.contains(where: { $0.alternative.isLowData }) else { return request }
    return request.with { $0.networkAccess.remove(.constrained) }
  }

  private func load(_ alternative: ResolvedAlternative, _ account: TransferMeter) async throws(CacheError) -> Exchange {
    let permitted = alternative.alternative.isLowData ? request : original
    let source = try alternative.source.get()
    let nested = permitted.with { $0.request(source, as: alternative.alternative) }
    report(.progress(LoadProgress(received: 0)))
    return try await fetch(account.metering(nested))
  }

  private func fetch(_ load: ResolvedRequest) async throws(CacheError) -> Exchange {
    try await performing(load).followingRedirects()
  }

  /// Whether another source may help. It does not help after a refusal, a cancellation, or an error of the configuration.
  private static func isWorthAnother(_ error: CacheError) -> Bool {
    let decided: [CacheError.Code] = [
      .cancelled, .notCached, .closed, .refused, .addressRefused, .invalidConfiguration, .misuse, .unscripted,
    ]
    return !decided.contains(error.code)
  }

  /// Whether the destination has failed. It would not accept the bytes of another source either.
  func isAboutTarget(_ error: CacheError) -> Bool {
    switch request.destination {
    case .stream, .memory: false
    case .file(let partialFile):
      error.path == partialFile.target && !error.isAboutSourceFile && [.fileSystem, .diskFull].contains(error.code)
    case .store: error.code == .diskFull
    }
  }

  /// Returns the error of the original, with all failures as its underlying error.
  private static func error(of failures: [CacheError]) -> CacheError {
    guard failures.count > 1, var error = failures.first else {
      return failures.first ?? CacheError(.other, reason: "the load has no source")
    }
    let others = failures.count == 2 ? "the alternative" : "\(failures.count - 1) alternatives"
    error.reason += ", and \(others) failed too"
    error.underlying = FailureHistory(failures)
    return error
  }
}

/// Measures the transfers of one load from all its sources, including those that failed.
final class TransferMeter: Sendable {
  private struct State {
    /// The metrics of the responses. Their bodies may still be arriving.
    var responses: [@Sendable () -> TransferMetrics] = []
    /// The number of requests without a response.
    var withoutResponse = 0
  }

  private let clock: any CacheClock
  private let startedAt: Duration
  private let state = Lock(State())

  init(_ clock: any CacheClock) {
    self.clock = clock
    startedAt = clock.uptime
  }

  /// Returns the same request with a downloader that this meter measures.
  func metering(_ load: ResolvedRequest) -> ResolvedRequest {
    guard let downloader = load.downloader else { return load }
    return load.with { $0.downloader = MeteredDownloader(base: downloader, account: self) }
  }

  /// The cost of all transfers so far: counts, and the time since the load began.
  var spent: TransferMetrics {
    let (responses, withoutResponse) = state.withLock { ($0.responses, $0.withoutResponse) }
    // The closures belong to the engine, so they are called outside the lock.
    var spent = responses.reduce(TransferMetrics.nothing) { spent, measured in
      var metrics = measured()
      metrics.attempts = max(1, metrics.attempts)
      return spent.followed(by: metrics)
    }
    spent.attempts += withoutResponse
    if spent.attempts > 0 { spent.total = clock.uptime - startedAt }
    return spent
  }

  fileprivate func note(_ response: DownloadResponse) { state.withLock { $0.responses.append(response.metrics) } }

  fileprivate func note(_ error: CacheError, attempt: Int) {
    guard !Self.unsent.contains(error.code) else { return }
    let sent = max(1, (error.attempt ?? attempt) - attempt + 1)
    state.withLock { $0.withoutResponse += sent }
  }

  /// The errors for which no request was sent.
  private static let unsent: Set<CacheError.Code> = [.networkRestricted, .retryLater, .unsupportedScheme, .invalidURL]
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
