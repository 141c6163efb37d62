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
      guard let fallback, error.isUnreachable else { return .pass(.none, shareable: request.isSafe) }
      return .serveStale(fallback)
    case .success(let response):
      let exchange = Exchange(
        request: request, sent: sent, response: response, requestTime: requestTime, responseTime: now, rules)
      let reading = request.method == .get || request.method == .head
      if reading, exchange.status == 304 {
        return notModified(exchange, fallback: fallback, stored: stored, revision: revision)
      }
      if reading, let fallback, mayServeStaleOnError(stored[fallback], for: exchange) { return .serveStale(fallback) }
      if let verdict = continued(exchange, stored: stored, revision: revision) { return verdict }
      guard let metadata = storable(exchange, revision: revision) else {
        return .pass(changes(by: exchange, stored: stored), shareable: isShareable(exchange))
      }
      return store(metadata, exchange, stored: stored)
    }
  }

  private func store(_ metadata: StoredMetadata, _ exchange: Exchange, stored: [StoredMetadata]) -> ValidationVerdict {
    let variant = SelectingFields(of: metadata, vary: exchange.summary.vary).variant
    var changes = StoreChanges(drops: stored.indices.filter { replaces(metadata, variant, exchange, stored[$0]) })
    if !exchange.request.isSafe {
      // The response is the target's new state, so all of its stored responses are outdated (RFC 9111 §4.4).
      let target = ResourceID.uri(of: exchange.request)
      changes = StoreChanges(drops: Array(stored.indices), invalidations: exchange.changedResources.filter { $0 != target })
    }
    enforceVariantLimit(&changes, stored)
    return .store(variant: variant, metadata, changes)
  }

  /// Returns whether a new response replaces a stored one. A stored response that matched this request by other selecting fields
  /// would compete with the new one. One that matches no request is never used again.
  private func replaces(
    _ metadata: StoredMetadata, _ variant: String, _ exchange: Exchange, _ other: StoredMetadata
  ) -> Bool {
    if metadata.isPart { return replaces(part: metadata, other, exchange) }
    return matches(other, exchange.request) || SelectingFields(of: other).variant == variant
      || Vary(other.response.headerFields).matchesNothing
  }

  /// Returns whether a part replaces a stored part: one of another state, or one inside its range.
  private func replaces(part metadata: StoredMetadata, _ other: StoredMetadata, _ exchange: Exchange) -> Bool {
    guard other.isPart, matches(other, exchange.request) else { return false }
    guard let mine = StoredPart(metadata), let others = StoredPart(other),
      mine.completeLength == others.completeLength,
      EntityTag.strong(of: metadata.response.headerFields) == EntityTag.strong(of: other.response.headerFields)
    else { return true }
    return others.bytes.clamped(to: mine.bytes) == others.bytes
  }

  /// Removes the oldest responses until there is space for one more.
  func enforceVariantLimit(_ changes: inout StoreChanges, _ stored: [StoredMetadata]) {
    let excess = stored.count - changes.drops.count + 1 - variantLimit
    guard excess > 0 else { return }
    let gone = Set(changes.drops)
    let kept = stored.indices.filter { !gone.contains($0) }.sorted { stored[$0].responseTime < stored[$1].responseTime }
    changes.drops += kept.prefix(excess)
  }

  /// Returns whether `stale-if-error`, of the stored response or of the request, allows the stored response in place of a server
  /// error. The plan has already established that no directive forbids it.
  ///
  /// RFC 5861 §4 names 500, 502, 503 and 504. A 429 (RFC 6585 §4) is treated in the same way: like a 503, it says that the server
  /// has no response now, and not that the resource has changed.
  private func mayServeStaleOnError(_ metadata: StoredMetadata, for exchange: Exchange) -> Bool {
    guard [429, 500, 502, 503, 504].contains(exchange.status) else { return false }
    let stored = ResponseSummary(metadata.response.headerFields, rules, responseTime: metadata.responseTime)
    let windows = [stored.directives.staleIfError, exchange.requestDirectives.staleIfError]
    guard let longest = windows.compactMap({ $0 }).max() else { return false }
    return exchange.responseTime < metadata.freshness.freshUntil + longest
  }

  /// Returns whether concurrent equal requests may receive a response that is not stored. They may share a missing page or a
  /// failure of the origin, but not a response that was made for one request.
  private func isShareable(_ exchange: Exchange) -> Bool {
    exchange.request.isSafe && !forbidsStoring(of: exchange) && !exchange.summary.vary.matchesNothing
  }

  /// Returns the changes to stored responses that a response causes that is not stored itself.
  private func changes(by exchange: Exchange, stored: [StoredMetadata]) -> StoreChanges {
    let (request, summary) = (exchange.request, exchange.summary)
    guard request.isSafe else { return StoreChanges(invalidations: exchange.changedResources) }
    guard exchange.status == 200 else { return .none }
    if request.method == .head { return StoreChanges(updates: headUpdates(of: exchange, stored: stored)) }
    // A new full response that must not be stored: without a change, the outdated stored one would still be served without a
    // request.
    guard request.method == .get, let outdated = selected(by: request, from: stored) else { return .none }
    if summary.directives.noStore || summary.vary.matchesNothing {
      return StoreChanges(invalidations: ResourceID.uri(of: request).map { [$0] } ?? [])
    }
    return summary.forbidsSharedStorage ? StoreChanges(drops: [outdated]) : .none
  }
}
