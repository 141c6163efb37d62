internal import CacheCore
internal import HTTPTypes

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// One request of a load: plan, use what is stored or ask, judge, store.
struct Hop: Sendable {
  let fetch: Fetch
  let step: RedirectHop
  let cache: TieredCache

  init(fetch: Fetch, step: RedirectHop) {
    self.fetch = fetch
    self.step = step
    cache = TieredCache(load: fetch.load, resource: fetch.load.resource(of: step.request, isFirstHop: step.chain.isEmpty))
  }

  var load: ResolvedRequest { fetch.load }
  var request: HTTPRequest { step.request }
  var resource: String { cache.resource }

  func run() async throws(CacheError) -> LoadOutcome {
    var candidates = try await cache.candidates(for: request)
    if load.standing == .mirror { return try await askMirror(candidates) }
    while true {
      if Task.isCancelled { throw .cancelled }
      switch Planner(load).plan(request, stored: candidates.map(\.metadata)) {
      case .use(let index, let revalidation):
        guard let kept = try await cache.read(candidates[index]) else {
          // Evicted or damaged meanwhile: a miss. Without it there may be another answer, or none.
          candidates.remove(at: index)
          continue
        }
        let stored = usable(kept, candidates[index])
        guard let revalidation, load.target.isMemory || load.writes.contains(.disk) else { return stored }
        announce(stored)
        return try await revalidate(revalidation, candidates, index)
      case .fetch(let sent, let fallback, _):
        guard load.policy != .cacheOnly else { throw Self.notCached }
        return try await ask(sent, candidates, fallback: fallback)
      case .answer(let response):
        guard response.status.code != 504 else { throw Self.notCached }
        throw Fetch.unacceptable(response.status, attempt: 0)
      }
    }
  }

  /// Asks about what has been shown; where somebody does so already, waits for that and looks again.
  @inline(never)
  private func revalidate(
    _ sent: HTTPRequest, _ candidates: [Candidate], _ index: Int
  ) async throws(CacheError) -> LoadOutcome {
    guard load.target.isMemory else { return try await ask(sent, candidates, fallback: index) }
    let subject = RevalidationTable.Subject(cache)
    if let other = fetch.revalidations.enter(subject) {
      guard await other.value() != nil else { throw .cancelled }
      if let fetched = try await confirmed() { return fetched }
      return try await ask(sent, candidates, fallback: index)
    }
    defer { fetch.revalidations.leave(subject) }
    return try await ask(sent, candidates, fallback: index)
  }

  /// What is stored and fresh by now.
  private func confirmed() async throws(CacheError) -> LoadOutcome? {
    let candidates = try await cache.candidates(for: request)
    guard case .use(let index, nil) = Planner(load).plan(request, stored: candidates.map(\.metadata)),
      let kept = try await cache.read(candidates[index])
    else { return nil }
    return usable(kept, candidates[index])
  }

  /// Asks another server in the original's place: what is stored are not its answers, so it is neither asked about them nor do
  /// they stand in for its own.
  private func askMirror(_ candidates: [Candidate]) async throws(CacheError) -> LoadOutcome {
    guard case .fetch(let sent, _, _) = Planner(load).plan(request, stored: []) else { throw Self.notCached }
    return try await ask(sent, candidates, fallback: nil)
  }

  private static var notCached: CacheError {
    CacheError(.notCached, reason: "not in the cache, and only the cache may be asked")
  }

  /// What is stored, as an answer that nobody was asked about.
  func usable(_ kept: TieredCache.Kept, _ candidate: Candidate) -> LoadOutcome {
    LoadOutcome(
      .init(
        data: kept.data, metadata: candidate.metadata, key: candidate.key,
        url: load.origin(of: candidate.metadata, for: request, at: step.url), redirects: step.chain, source: kept.source,
        validation: .notAttempted, isBodyLeft: kept.isBodyLeft, encoded: kept.encoded, share: kept.share))
  }

  /// Shows a stored answer before the final one, unless it is a step on the way, or an alternative's: that is not the old one of
  /// what was asked for.
  private func announce(_ stored: LoadOutcome) {
    // It is handed on, and what follows does not wait for what is done with it.
    stored.share?.release()
    guard load.standing == .original, load.isResult(stored.metadata.response) else { return }
    // Whoever waits for a file takes it now: what follows goes into the store alone.
    if case .file(let draft) = load.target { draft.seal() }
    fetch.report(.stale(stored))
  }

  /// Asks the network, and once more without conditions when a 304 confirms nothing that can be shown.
  private func ask(_ sent: HTTPRequest, _ candidates: [Candidate], fallback: Int?) async throws(CacheError) -> LoadOutcome {
    let showing = showCached(candidates, fallback)
    defer { showing?.cancel() }
    let isAbout = Planner(load).selection(by: request, from: candidates.map(\.metadata))
    let exchange = Exchange(hop: self, candidates: candidates, fallback: fallback, isAbout: isAbout)
    if let fetched = try await exchange.run(sent) { return fetched }
    // What may have changed something is not sent twice.
    guard RetryState.isAllowed(of: request.method) else { throw Self.unaskedNotModified }
    var unconditional = sent
    for name in [HTTPField.Name.ifNoneMatch, .ifModifiedSince] where request.headerFields[name] == nil {
      unconditional.headerFields[name] = nil
    }
    if let fetched = try await exchange.run(unconditional) { return fetched }
    throw Self.unaskedNotModified
  }

  private static var unaskedNotModified: CacheError {
    CacheError(
      .malformedResponse, reason: "the server answered 304 (not modified) to a request without a condition", status: 304)
  }

  /// `showCachedAfter`: a timer that shows the stored answer when the network is slow.
  private func showCached(_ candidates: [Candidate], _ fallback: Int?) -> Task<Void, Never>? {
    // A file is written once, by one answer at a time.
    guard case .revalidate(_, let delay?) = load.policy, let fallback, load.target.isMemory else { return nil }
    return Task {
      guard (try? await load.clock.sleep(for: delay)) != nil else { return }
      guard let kept = try? await cache.read(candidates[fallback]), !Task.isCancelled else { return }
      announce(usable(kept, candidates[fallback]))
    }
  }
}
