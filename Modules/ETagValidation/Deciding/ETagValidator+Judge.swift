public import CacheCore
public import HTTPTypes

extension ETagValidator {
  /// Decides about what the network answered.
  public func judge(
    _ answer: Result<HTTPResponse, CacheError>, to request: HTTPRequest, sent: HTTPRequest, fallback: Int?,
    stored: [StoredMetadata], requestTime: Timestamp, now: Timestamp, revision: Revision
  ) -> ValidationVerdict {
    let fallback = fallback.flatMap { stored.indices.contains($0) ? $0 : nil }
    switch answer {
    case .failure(let error):
      guard let fallback, error.isUnreachable else { return .pass(.none, shareable: request.isSafe) }
      return .serveStale(fallback)
    case .success(let response):
      let exchange = Exchange(
        request: request, sent: sent, response: response, requestTime: requestTime, responseTime: now)
      let reading = request.method == .get || request.method == .head
      if reading, exchange.status == 304 {
        return notModified(exchange, fallback: fallback, stored: stored, revision: revision)
      }
      if reading, let fallback, mayStandIn(stored[fallback], for: exchange) { return .serveStale(fallback) }
      if let verdict = continued(exchange, stored: stored, revision: revision) { return verdict }
      guard let metadata = storable(exchange, revision: revision) else {
        return .pass(changes(by: exchange, stored: stored), shareable: isShareable(exchange))
      }
      return store(metadata, exchange, stored: stored)
    }
  }

  private func store(_ metadata: StoredMetadata, _ exchange: Exchange, stored: [StoredMetadata]) -> ValidationVerdict {
    let variant = SelectingFields(of: metadata).variant
    var changes = StoreChanges(drops: stored.indices.filter { replaces(metadata, variant, exchange, stored[$0]) })
    if !exchange.request.isSafe {
      // The answer is the target's new state: everything that was stored of it has been changed (RFC 9111 §4.4).
      let target = ResourceID.uri(of: exchange.request)
      changes = StoreChanges(drops: Array(stored.indices), invalidations: exchange.changedResources.filter { $0 != target })
    }
    keepWithinLimit(&changes, stored)
    return .store(variant: variant, metadata, changes)
  }

  /// Whether a new answer takes a stored one's place: what matched this request by other selecting fields would compete with it;
  /// what matches nothing is never used again.
  private func replaces(
    _ metadata: StoredMetadata, _ variant: String, _ exchange: Exchange, _ other: StoredMetadata
  ) -> Bool {
    if metadata.isPart { return replaces(part: metadata, other, exchange) }
    return matches(other, exchange.request) || SelectingFields(of: other).variant == variant
      || Vary(other.response.headerFields).matchesNothing
  }

  /// A part takes the place of parts of another state, and of those that lie inside it.
  private func replaces(part metadata: StoredMetadata, _ other: StoredMetadata, _ exchange: Exchange) -> Bool {
    guard other.isPart, matches(other, exchange.request) else { return false }
    guard let mine = StoredPart(metadata)?.range, let others = StoredPart(other)?.range,
      mine.completeLength == others.completeLength,
      EntityTag.strong(of: metadata.response.headerFields) == EntityTag.strong(of: other.response.headerFields)
    else { return true }
    return others.bytes.clamped(to: mine.bytes) == others.bytes
  }

  /// The oldest give way until there is room for one more.
  func keepWithinLimit(_ changes: inout StoreChanges, _ stored: [StoredMetadata]) {
    let excess = stored.count - changes.drops.count + 1 - variantLimit
    guard excess > 0 else { return }
    let gone = Set(changes.drops)
    let kept = stored.indices.filter { !gone.contains($0) }.sorted { stored[$0].responseTime < stored[$1].responseTime }
    changes.drops += kept.prefix(excess)
  }

  /// `stale-if-error`, of the stored answer or of the request, in place of an error that the origin, or someone before it, has
  /// answered with (RFC 5861 §4). The plan has found already that nothing forbids it.
  private func mayStandIn(_ metadata: StoredMetadata, for exchange: Exchange) -> Bool {
    guard [500, 502, 503, 504].contains(exchange.status) else { return false }
    let windows = [
      rules.directives(of: metadata.response.headerFields).stated.staleIfError,
      CacheControl(request: exchange.request).staleIfError,
    ]
    guard let longest = windows.compactMap({ $0 }).max() else { return false }
    return exchange.responseTime < metadata.freshness.freshUntil + longest
  }

  /// Whether others who asked the same at the same time may have an answer that is not stored: everybody may see that a page is
  /// missing or an origin down, nobody an answer that was made for one request.
  private func isShareable(_ exchange: Exchange) -> Bool {
    guard exchange.request.isSafe, !CacheControl(request: exchange.request).noStore else { return false }
    let directives = rules.directives(of: exchange.response.headerFields)
    return !directives.stated.noStore && !directives.isOthers && !Vary(exchange.response.headerFields).matchesNothing
  }

  /// What an answer that is not stored means for what is.
  private func changes(by exchange: Exchange, stored: [StoredMetadata]) -> StoreChanges {
    let (request, response) = (exchange.request, exchange.response)
    guard request.isSafe else { return StoreChanges(invalidations: exchange.changedResources) }
    guard exchange.status == 200 else { return .none }
    if request.method == .head { return StoreChanges(updates: news(of: exchange, stored: stored)) }
    // A new full answer that must not be kept: what is stored would go on being shown where nobody is asked.
    let directives = rules.directives(of: response.headerFields)
    guard request.method == .get, let outdated = selected(by: request, from: stored) else { return .none }
    if directives.stated.noStore || Vary(response.headerFields).matchesNothing {
      return StoreChanges(invalidations: ResourceID.uri(of: request).map { [$0] } ?? [])
    }
    return directives.isOthers ? StoreChanges(drops: [outdated]) : .none
  }
}
