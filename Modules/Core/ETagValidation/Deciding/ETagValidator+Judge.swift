public import CacheCore
public import HTTPTypes

extension ETagValidator {
  /// Returns the consequences of a response or an error from the network.
  public func judge(
    _ result: Result<HTTPResponse, CacheError>, to request: HTTPRequest, sent: HTTPRequest, fallback: Int?,
    stored: [StoredMetadata], requestTime: Timestamp, now: Timestamp, revision: Revision
  ) -> ValidationVerdict {
    let fallback = fallback.flatMap { stored.indices.contains($0) ? $0 : nil }
    switch result {
    case .failure(let error):
      guard let fallback, error.isUnreachable else { return .pass(.none, shareable: request.method.isSafe) }
      return .serveStale(fallback)
    case .success(let response):
      let received = JudgedResponse(
        request: request, sent: sent, response: response, requestTime: requestTime, responseTime: now, rules)
      let reading = received.method == .get || received.method == .head
      if reading, received.status == 304 { return notModified(received, fallback: fallback, stored: stored, revision: revision) }
      if reading, let fallback, mayServeStaleOnError(stored[fallback], for: received) { return .serveStale(fallback) }
      guard let metadata = storable(received, revision: revision) else {
        return .pass(changes(by: received, stored: stored), shareable: isShareable(received))
      }
      return store(metadata, received, stored: stored)
    }
  }

  private func store(_ metadata: StoredMetadata, _ received: JudgedResponse, stored: [StoredMetadata]) -> ValidationVerdict {
    let variant = SelectingFields(of: metadata, vary: received.summary.vary).variant
    var changes = StoreChanges(drops: stored.indices.filter { replaces(metadata, variant, received, stored[$0]) })
    if !received.method.isSafe {
      // The response is the target's new state, so all of its stored responses are outdated (RFC 9111 §4.4).
      let target = ResourceID.uri(of: received.request)
      changes = StoreChanges(drops: Array(stored.indices), invalidations: received.changedResources.filter { $0 != target })
    }
    enforceLimit(&changes, stored, ofParts: metadata.isPart)
    return .store(variant: variant, metadata, changes)
  }

  /// Returns whether a new response replaces a stored one. A stored response that matched this request by other selecting fields
  /// would compete with the new one. One that matches no request is never used again.
  private func replaces(
    _ metadata: StoredMetadata, _ variant: String, _ received: JudgedResponse, _ other: StoredMetadata
  ) -> Bool {
    if metadata.isPart { return replaces(part: metadata, other, received) }
    return matches(other, received.request) || SelectingFields(of: other).variant == variant
      || Vary(other.response.headerFields).matchesNothing
  }

  /// Returns whether a part replaces a stored part: one of another state, or one inside its range.
  private func replaces(part metadata: StoredMetadata, _ other: StoredMetadata, _ received: JudgedResponse) -> Bool {
    guard other.isPart, matches(other, received.request) else { return false }
    guard let mine = StoredPart(metadata), let others = StoredPart(other),
      PartState(metadata, mine) == PartState(other, others)
    else { return true }
    return others.bytes.clamped(to: mine.bytes) == others.bytes
  }

  /// Removes the oldest responses until there is space for one more. Parts have a limit of their own, because a reader that jumps
  /// in a video leaves many.
  func enforceLimit(_ changes: inout StoreChanges, _ stored: [StoredMetadata], ofParts isPart: Bool = false) {
    let gone = Set(changes.drops)
    let kept = stored.indices.filter { !gone.contains($0) && stored[$0].isPart == isPart }
    let excess = kept.count + 1 - (isPart ? Self.partLimit : variantLimit)
    guard excess > 0 else { return }
    changes.drops += kept.sorted { stored[$0].responseTime < stored[$1].responseTime }.prefix(excess)
  }

  /// The maximum number of stored parts of a resource. Each lookup reads the metadata of all of them.
  private static let partLimit = 64

  /// Returns whether `stale-if-error`, of the stored response or of the request, allows the stored response in place of a server
  /// error. The plan has already established that no directive forbids it.
  ///
  /// RFC 5861 §4 names 500, 502, 503 and 504. A 429 (RFC 6585 §4) is treated in the same way: like a 503, it says that the server
  /// has no response now, and not that the resource has changed.
  private func mayServeStaleOnError(_ metadata: StoredMetadata, for received: JudgedResponse) -> Bool {
    guard [429, 500, 502, 503, 504].contains(received.status) else { return false }
    let stored = ResponseSummary(metadata.response.headerFields, rules, responseTime: metadata.responseTime)
    let windows = [stored.directives.staleIfError, received.requestDirectives.staleIfError]
    guard let longest = windows.compactMap({ $0 }).max() else { return false }
    return received.responseTime < metadata.freshness.freshUntil + longest
  }

  /// Returns whether concurrent equal requests may receive a response that is not stored. They may share a missing page or a
  /// failure of the origin, but not a response that was made for one request.
  private func isShareable(_ received: JudgedResponse) -> Bool {
    received.method.isSafe && !forbidsStoring(of: received) && !received.summary.vary.matchesNothing
  }

  /// Returns the changes to stored responses that a response causes that is not stored itself.
  private func changes(by received: JudgedResponse, stored: [StoredMetadata]) -> StoreChanges {
    let (request, summary) = (received.request, received.summary)
    guard request.method.isSafe else { return StoreChanges(invalidations: received.changedResources) }
    guard received.status == 200 else { return .none }
    if request.method == .head { return StoreChanges(updates: headUpdates(of: received, stored: stored)) }
    // A new full response that must not be stored: without a change, the outdated stored one would still be served without a
    // request.
    guard request.method == .get, let outdated = selected(by: request, from: stored) else { return .none }
    if summary.directives.noStore || summary.vary.matchesNothing {
      return StoreChanges(invalidations: ResourceID.uri(of: request).map { [$0] } ?? [])
    }
    return summary.forbidsSharedStorage ? StoreChanges(drops: [outdated]) : .none
  }
}
