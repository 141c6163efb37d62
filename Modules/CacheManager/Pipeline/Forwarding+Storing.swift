internal import CacheCore
internal import HTTPTypes

/// What becomes of an answer that may be stored.
extension Forwarding {
  /// A body that is stored as it is read, and whether it is stored anywhere, as far as can be told before it has come.
  func storing(
    _ body: ResourceBody, _ metadata: StoredMetadata, _ variant: String, replacing outdated: [Candidate],
    on another: TieredCache? = nil
  ) async throws(CacheError) -> (body: ResourceBody, isStored: Bool) {
    let cache = another ?? cache
    var candidate = Candidate(key: CacheKey(resource: cache.resource, variant: variant), metadata: metadata)
    candidate.metadata.expiration = .earlier(metadata.expiration, load.expiration, from: metadata.responseTime)
    candidate.metadata.bodyLength = body.length
    let writer = try await cache.writer(candidate)
    let storing = StoringBody(
      body, candidate, cache: cache, writer: writer, replacing: outdated, known: candidates, leader: leader)
    guard body.length != 0 else {
      // Nobody need ask for the end of nothing.
      _ = try await storing.next()
      return (.none, writer != nil || storing.mayFitInMemory)
    }
    return (share(storing, candidate, writer), writer != nil || storing.mayFitInMemory)
  }

  /// The body for its caller, and for those who wait.
  private func share(_ storing: StoringBody, _ candidate: Candidate, _ writer: (any EntryWriter)?) -> ResourceBody {
    let alone = ResourceBody(length: storing.length, source: storing)
    guard let leader else { return alone }
    guard isShareable(candidate.metadata) else {
      leader.unshared(.success(candidate.metadata.response), isUsual: true)
      return alone
    }
    if let shared = SharedBody(storing, writer: writer, on: load.downloader?.preferredExecutor) {
      leader.grows(as: candidate, in: shared)
      return shared.first
    }
    // Its end will tell whether it fits; where that is clear already, it is stored nowhere.
    if storing.length != nil { leader.unshared(.success(candidate.metadata.response), isUsual: true) }
    return alone
  }

  /// Whether equal requests that arrived before a response may be answered with it.
  func isShareable(_ metadata: StoredMetadata) -> Bool {
    // Without a stated lifetime, a response that sets a cookie is likely to be for one user.
    guard metadata.wasFresh || !metadata.response.headerFields.contains(.setCookie) else { return false }
    guard case .use = Planner(load).plan(load.head, validatedMeanwhile: metadata) else { return false }
    return true
  }

  /// Whether other requests may use what a 304 has confirmed. They may not where a 200 with the same fields could not be stored
  /// (`no-store`, or `private` in a shared cache).
  func sharesConfirmation(_ answer: Answer) -> Bool {
    let verdict = Planner(load).judge(
      .success(HTTPResponse(status: .ok, headerFields: answer.response.head.headerFields)), to: load.head, sent: load.head,
      fallback: nil, stored: [], requestTime: answer.requestTime)
    guard case .store = verdict else { return false }
    return true
  }
}
