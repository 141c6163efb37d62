internal import CacheCore

/// Loading the original, and then its alternatives in order, until one of them succeeds.
extension LoadOperation {
  func tryingAlternatives() async throws(CacheError) -> LoadOutcome {
    var failures: [CacheError] = []
    var standIn: LoadOutcome?
    let account = TransferMeter(request.clock)
    do throws(CacheError) {
      let original = try await fetch(account.metering(self.original))
      guard let failure = original.fallbackReason else { return original }
      // A response of another source is better than a stored one that cannot be confirmed.
      standIn = original
      // The bodies of the alternatives do not wait for its memory.
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
        return try await ask(alternative, account).with { $0.metrics = spent.followed(by: $0.metrics) }
      } catch {
        if error.isCancellation || isAboutTarget(error) { throw error }
        failures.append(error.about(alternative.alternative.url.address))
      }
    }
    if let standIn, let whole = try await whole(standIn) { return whole.with { $0.metrics = account.spent } }
    throw Self.error(of: failures)
  }

  /// Returns the stored response that stands in after all alternatives have failed, or `nil` if it is gone.
  ///
  /// It is copied into the caller's file again, because alternatives may have left bytes there.
  private func whole(_ standIn: LoadOutcome) async throws(CacheError) -> LoadOutcome? {
    guard case .file = request.destination else { return standIn }
    let cache = TieredCache(request, resource: standIn.key.resource)
    let candidate = Candidate(key: standIn.key, metadata: standIn.metadata)
    guard let content = try await cache.content(of: candidate) else { return nil }
    return standIn.with { $0.source = content.source }
  }

  /// The request for the original. It does not use constrained networks if there is a low-data alternative.
  private var original: ResolvedRequest {
    guard request.alternatives.contains(where: { $0.alternative.isLowData }) else { return request }
    var parts = request.settings
    parts.networkAccess.remove(.constrained)
    return ResolvedRequest(parts)
  }

  private func ask(_ alternative: ResolvedAlternative, _ account: TransferMeter) async throws(CacheError) -> LoadOutcome {
    let permitted = alternative.alternative.isLowData ? request : original
    let asking = ResolvedRequest(permitted.settings.asking(try alternative.source.get(), as: alternative.alternative))
    report(.progress(LoadProgress(received: 0)))
    return try await fetch(account.metering(asking))
  }

  private func fetch(_ load: ResolvedRequest) async throws(CacheError) -> LoadOutcome {
    try await LoadOperation(request: load, priority: priority, report: report, revalidations: revalidations).followingRedirects()
  }

  /// Whether another source may help. It does not after a refusal, a cancellation, or an error of the configuration.
  private static func isWorthAnother(_ error: CacheError) -> Bool {
    let decided: [CacheError.Code] = [
      .cancelled, .notCached, .closed, .refused, .addressRefused, .invalidConfiguration, .misuse, .unscripted,
    ]
    return !decided.contains(error.code)
  }

  /// Whether the destination has failed. It would not take the bytes of another source either.
  private func isAboutTarget(_ error: CacheError) -> Bool {
    switch request.destination {
    case .stream, .memory: false
    case .file(let draft):
      error.path == draft.target && !error.isAboutSourceFile && [.fileSystem, .diskFull].contains(error.code)
    case .store: error.code == .diskFull
    }
  }

  /// The error of the original, with all failures as its underlying error.
  private static func error(of failures: [CacheError]) -> CacheError {
    guard failures.count > 1, var error = failures.first else {
      return failures.first ?? CacheError(.other, reason: "no source was asked")
    }
    let others = failures.count == 2 ? "the alternative" : "\(failures.count - 1) alternatives"
    error.reason += ", and \(others) could not be had either"
    error.underlying = FailureHistory(failures)
    return error
  }
}
