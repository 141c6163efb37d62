public import CacheCore
public import HTTPTypes

extension ETagValidator {
  /// Decides about what the network answered.
  public func judge(
    _ answer: Result<HTTPResponse, CacheError>, to request: HTTPRequest, sent: HTTPRequest, fallback: Int?,
    stored: [StoredMetadata], requestTime: Timestamp, now: Timestamp, revision: Revision
  ) -> ValidationVerdict {
    switch answer {
    case .failure(let error):
      guard let fallback, stored.indices.contains(fallback), error.isUnreachable else {
        return .pass(.none, shareable: request.isSafe)
      }
      return .serveStale(fallback)
    case .success(let response):
      let exchange = Exchange(request: request, response: response, requestTime: requestTime, responseTime: now)
      if request.method == .get, response.status.code == 304, !request.hasConditionsOrRange {
        return notModified(exchange, sent: sent, fallback: fallback, stored: stored)
      }
      guard let metadata = storable(exchange, revision: revision) else {
        return .pass(StoreChanges(invalidations: outdated(by: exchange, stored: stored)), shareable: isShareable(exchange))
      }
      return store(metadata, exchange, stored: stored)
    }
  }

  private func store(_ metadata: StoredMetadata, _ exchange: Exchange, stored: [StoredMetadata]) -> ValidationVerdict {
    let variant = SelectingFields(of: metadata).variant
    // What matched this request by other selecting fields would compete with the new answer; what matches nothing is never used again.
    let replaced = stored.indices.filter { index in
      matches(stored[index], exchange.request) || SelectingFields(of: stored[index]).variant == variant
        || Vary(stored[index].response.headerFields).matchesNothing
    }
    return .store(variant: variant, metadata, StoreChanges(drops: Array(replaced)))
  }

  /// Whether others who asked the same at the same time may have an answer that is not stored: everybody may see that a page is missing or an origin
  /// down, nobody an answer that was made for one request.
  private func isShareable(_ exchange: Exchange) -> Bool {
    guard exchange.request.isSafe, !CacheControl(request: exchange.request).noStore else { return false }
    let fields = exchange.response.headerFields
    return !CacheControl(fields).noStore && !Vary(fields).matchesNothing
  }

  /// The resources of which an answer that is not stored says that what is stored is outdated.
  private func outdated(by exchange: Exchange, stored: [StoredMetadata]) -> [String] {
    let (request, response) = (exchange.request, exchange.response)
    guard request.isSafe else { return exchange.changedResources }
    // A new full answer that must not be kept: what is stored would go on being shown where nobody is asked.
    let fields = response.headerFields
    let replaces = CacheControl(fields).noStore || Vary(fields).matchesNothing
    guard request.method == .get, !request.hasConditionsOrRange, response.status.code == 200, replaces,
      selected(by: request, from: stored) != nil
    else { return [] }
    return ResourceID.uri(of: request).map { [$0] } ?? []
  }
}
