internal import CacheCore
internal import HTTPTypes

extension ETagValidator {
  /// Returns the verdict on a response to a request for the rest of a stored part. Returns `nil` if the plan did not send one, or
  /// if the origin sent the whole response or an error.
  ///
  /// The rest must have the same strong validator and length, and begin where the part ends. Both then form the whole response,
  /// with the newer fields (RFC 9110 §15.3.7.3). Any other part is useless to a caller that asked for the whole response.
  func continued(_ exchange: Exchange, stored: [StoredMetadata], revision: Revision) -> ValidationVerdict? {
    guard exchange.status == 206 || exchange.status == 416, exchange.sent.headerFields.contains(.range),
      !exchange.request.headerFields.contains(.range)
    else { return nil }
    let refetch = ValidationVerdict.refetch(exchange.sent.withConditions(of: exchange.request))
    let fields = exchange.response.headerFields
    guard exchange.status == 206, let rest = ContentRange(fields), rest.bytes.upperBound == rest.completeLength,
      let tag = EntityTag.strong(of: fields)
    else { return refetch }
    let first = stored.indices.first { index in
      guard let part = StoredPart(stored[index]), part.bytes == 0..<rest.bytes.lowerBound else { return false }
      return part.completeLength == rest.completeLength && matches(stored[index], exchange.request)
        && EntityTag.strong(of: stored[index].response.headerFields)?.stronglyMatches(tag) == true
    }
    guard let first,
      let metadata = whole(stored[first], continuedBy: exchange, length: rest.bytes.upperBound, revision: revision)
    else { return refetch }
    var changes = StoreChanges(drops: stored.indices.filter { matches(stored[$0], exchange.request) })
    enforceVariantLimit(&changes, stored)
    return .complete(first, variant: SelectingFields(of: metadata).variant, metadata, changes)
  }

  /// Returns the metadata of the whole response, or `nil` if the newer response must not be stored.
  private func whole(
    _ part: StoredMetadata, continuedBy exchange: Exchange, length: Int64, revision: Revision
  ) -> StoredMetadata? {
    var response = HTTPResponse(status: .ok, headerFields: part.response.headerFields)
    guard response.headerFields.hasCapacity(for: exchange.response.headerFields.count + 1) else { return nil }
    response.headerFields = response.headerFields.updated(by: exchange.response.headerFields)
    response.headerFields[.contentRange] = nil
    response.headerFields.set(.contentLength, "\(length)")
    let whole = Exchange(
      request: exchange.request, sent: exchange.sent, response: response, requestTime: exchange.requestTime,
      responseTime: exchange.responseTime, rules)
    var metadata = storable(whole, revision: revision)
    metadata?.bodyLength = length
    return metadata
  }
}
