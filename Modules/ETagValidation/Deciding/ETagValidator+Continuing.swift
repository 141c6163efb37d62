internal import CacheCore
internal import HTTPTypes

extension ETagValidator {
  /// The answer to a request for the rest of a stored part; nil when the plan has not asked for one, or when the origin has sent
  /// the whole, or an error, instead.
  ///
  /// Of the same strong validator and length, beginning where the part ends: both are the whole answer, with the newer one's
  /// fields (RFC 9110 §15.3.7.3). Any other part is of no use to a caller who asked for everything.
  func continued(_ exchange: Exchange, stored: [StoredMetadata], revision: Revision) -> ValidationVerdict? {
    guard exchange.sent.headerFields.contains(.range), !exchange.request.headerFields.contains(.range),
      exchange.status == 206 || exchange.status == 416
    else { return nil }
    let refetch = ValidationVerdict.refetch(exchange.sent.withConditions(of: exchange.request))
    let fields = exchange.response.headerFields
    guard exchange.status == 206, let rest = ContentRange(fields), rest.bytes.upperBound == rest.completeLength,
      let tag = EntityTag.strong(of: fields)
    else { return refetch }
    let first = stored.indices.first { index in
      guard let range = StoredPart(stored[index])?.range, range.bytes == 0..<rest.bytes.lowerBound else { return false }
      return range.completeLength == rest.completeLength && matches(stored[index], exchange.request)
        && EntityTag.strong(of: stored[index].response.headerFields)?.stronglyMatches(tag) == true
    }
    guard let first, let metadata = whole(stored[first], continuedBy: exchange, rest, revision: revision) else { return refetch }
    var changes = StoreChanges(drops: stored.indices.filter { matches(stored[$0], exchange.request) })
    keepWithinLimit(&changes, stored)
    return .complete(first, variant: SelectingFields(of: metadata).variant, metadata, changes)
  }

  /// The metadata of the whole; nil when the newer answer may not be stored.
  private func whole(
    _ part: StoredMetadata, continuedBy exchange: Exchange, _ rest: ContentRange, revision: Revision
  ) -> StoredMetadata? {
    var response = HTTPResponse(status: .ok, headerFields: part.response.headerFields)
    guard response.headerFields.hasRoom(for: exchange.response.headerFields.count + 1) else { return nil }
    response.headerFields = response.headerFields.updated(by: exchange.response.headerFields)
    response.headerFields[.contentRange] = nil
    response.headerFields.set(.contentLength, "\(rest.completeLength)")
    let whole = Exchange(
      request: exchange.request, sent: exchange.sent, response: response, requestTime: exchange.requestTime,
      responseTime: exchange.responseTime)
    var metadata = storable(whole, revision: revision)
    metadata?.bodyLength = rest.completeLength
    return metadata
  }
}
