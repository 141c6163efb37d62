internal import CacheCore

/// The original first, then its alternatives in order, until one of them can be had.
extension Fetch {
  func tryingAlternatives() async throws(CacheError) -> Fetched {
    var failures: [CacheError] = []
    var standIn: Fetched?
    do throws(CacheError) {
      let original = try await Fetch(load: original, priority: priority, report: report).followingRedirects()
      guard let failure = original.standsInFor else { return original }
      // What another source has now goes before what is stored and can't be confirmed.
      standIn = original
      failures.append(failure.about(load.address))
    } catch {
      guard Self.isWorthAnother(error) else { throw error }
      failures.append(error.about(load.address))
    }
    for alternative in load.alternatives {
      guard alternative.kind != .lowData || failures.contains(where: { $0.code == .networkRestricted }) else { continue }
      if Task.isCancelled { throw .cancelled }
      do throws(CacheError) {
        return try await ask(alternative)
      } catch {
        if error.isCancellation { throw error }
        failures.append(error.about(alternative.url.address))
      }
    }
    if let standIn { return standIn }
    throw Self.error(of: failures)
  }

  /// The load without what a low-data alternative is there for.
  private var original: ResolvedLoad {
    guard load.alternatives.contains(where: { $0.kind == .lowData }) else { return load }
    var parts = load.parts
    parts.networkAccess.remove(.constrained)
    return ResolvedLoad(parts)
  }

  private func ask(_ alternative: ResolvedAlternative) async throws(CacheError) -> Fetched {
    let permitted = alternative.kind == .lowData ? load : original
    let asking = ResolvedLoad(permitted.parts.asking(try alternative.source.get(), as: alternative.kind))
    report(.progress(LoadProgress(received: 0)))
    return try await Fetch(load: asking, priority: priority, report: report).followingRedirects()
  }

  /// Whether another source may help. Not when somebody has decided that there shall be no answer, or that nobody is asked.
  private static func isWorthAnother(_ error: CacheError) -> Bool {
    let decided: [CacheError.Code] = [
      .cancelled, .notCached, .closed, .refused, .addressRefused, .invalidConfiguration, .misuse, .unscripted,
    ]
    return !decided.contains(error.code)
  }

  /// The original's error, with all of them behind it.
  private static func error(of failures: [CacheError]) -> CacheError {
    guard failures.count > 1, var error = failures.first else {
      return failures.first ?? CacheError(.other, reason: "no source was asked")
    }
    let others = failures.count == 2 ? "the alternative" : "\(failures.count - 1) alternatives"
    error.reason += ", and \(others) could not be had either"
    error.underlying = SourceFailures(failures)
    return error
  }
}
