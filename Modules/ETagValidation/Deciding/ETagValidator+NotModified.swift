internal import CacheCore
internal import HTTPTypes

extension ETagValidator {
  /// Returns the verdict on a 304 (RFC 9111 §4.3.3, §4.3.4).
  ///
  /// A 304 confirms the stored response that it names, or the only one that was revalidated. It is the caller's own response if
  /// it names one of the caller's tags. In any other case, one more request is sent without the conditions that the plan added.
  func notModified(
    _ exchange: Exchange, fallback: Int?, stored: [StoredMetadata], revision: Revision
  ) -> ValidationVerdict {
    if let confirmed = confirmed(by: exchange, fallback: fallback, stored: stored) {
      let fresh = updatedMetadata(stored[confirmed], by: exchange)
      var changes = alongside(confirmed, exchange, stored)
      changes.copy = copy(of: confirmed, fresh, exchange, stored, revision)
      return .update(confirmed, fresh, changes)
    }
    guard exchange.request.hasOwnCondition, isCallers(exchange) else {
      return .refetch(exchange.sent.withConditions(of: exchange.request))
    }
    return .pass(.none, shareable: !forbidsStoring(of: exchange))
  }

  /// Returns whether the 304 applies to the caller's own condition: the plan added nothing to it, or the 304 names one of the
  /// caller's tags.
  private func isCallers(_ exchange: Exchange) -> Bool {
    let (own, sent) = (exchange.request.headerFields, exchange.sent.headerFields)
    let isUntouched = [HTTPField.Name.ifNoneMatch, .ifModifiedSince].allSatisfy { name in
      own[fields: name].map(\.bytes) == sent[fields: name].map(\.bytes)
    }
    return isUntouched
      || EntityTag.validator(of: exchange.response.headerFields).map { EntityTagList(.ifNoneMatch, of: own).names($0) } ?? false
  }

  private func confirmed(by exchange: Exchange, fallback: Int?, stored: [StoredMetadata]) -> Int? {
    let (fields, sent) = (exchange.response.headerFields, exchange.sent)
    guard sent.hasOwnCondition else { return nil }
    let preferred = stored.count > 1 ? [fallback, selected(by: exchange.request, from: stored)].compactMap { $0 } : []
    let order = preferred + stored.indices
    let tag = EntityTag.validator(of: fields)
    return order.first { index in
      let isOwn = matches(stored[index], exchange.request)
      guard isOwn || mayConfirm(stored[index], exchange.request),
        sent.revalidates(stored[index], apartFrom: exchange.request), canServe(stored[index], exchange.request)
      else { return false }
      // Another variant is confirmed only by its strong tag, which the 304 must name or which must be the only one in the
      // request. A date is not enough, because two variants may have the same one.
      if !isOwn, tag.map(\.isWeak) ?? !Self.hasSingleTag(sent) { return false }
      return confirms(fields, tag, stored[index].response.headerFields, sent)
    }
  }

  /// Returns whether the stored response can serve the request. A part cannot if the request needs other bytes.
  private func canServe(_ metadata: StoredMetadata, _ request: HTTPRequest) -> Bool {
    guard metadata.isPart else { return true }
    return request.singleRange.map { StoredPart(metadata)?.covered($0) != nil } ?? false
  }

  private static func hasSingleTag(_ sent: HTTPRequest) -> Bool {
    let tags = EntityTagList(.ifNoneMatch, of: sent.headerFields)
    return !tags.matchesAny && tags.tags.count == 1
  }

  /// Returns whether a 304 refers to the stored response. It does so by its tag, or without one if no other response was
  /// revalidated. If only a date was sent, `Last-Modified` decides.
  ///
  /// Tags are compared weakly, as the origin compares those of `If-None-Match` (RFC 9110 §13.1.2). Strong comparison would load
  /// every compressed file twice. Origins weaken the tag of a compressed 200, but not that of the 304, which has no bytes to
  /// compress.
  private func confirms(
    _ notModified: HTTPFields, _ tag: EntityTag?, _ stored: HTTPFields, _ sent: HTTPRequest
  ) -> Bool {
    guard stored.hasCapacity(for: notModified.count) else { return false }
    if let tag { return EntityTag.validator(of: stored).map(tag.weaklyMatches) ?? false }
    // For a request with a tag, the origin ignores the date (RFC 9110 §13.1.3).
    if sent.headerFields.contains(.ifNoneMatch) { return Self.hasSingleTag(sent) }
    guard let modified = notModified.first(.lastModified) else { return true }
    return modified.bytes == stored.first(.lastModified)?.bytes
  }

  /// Returns the updates to other stored responses that match the request and have the same strong validator (RFC 9111 §4.3.4).
  private func alongside(_ confirmed: Int, _ exchange: Exchange, _ stored: [StoredMetadata]) -> StoreChanges {
    guard stored.count > 1, let tag = EntityTag.strong(of: exchange.response.headerFields) else { return .none }
    let same = stored.indices.filter { index in
      index != confirmed && matches(stored[index], exchange.request)
        && stored[index].response.headerFields.hasCapacity(for: exchange.response.headerFields.count)
        && EntityTag.strong(of: stored[index].response.headerFields)?.stronglyMatches(tag) == true
    }
    return StoreChanges(
      updates: Dictionary(uniqueKeysWithValues: same.map { ($0, updatedMetadata(stored[$0], by: exchange)) }))
  }

  /// Returns a copy of another variant's response that the 304 has named. Stored under this request's selecting fields, it serves
  /// the next equal request (RFC 9111 §4.1, §4.3.3). No other response is removed for it.
  private func copy(
    of confirmed: Int, _ fresh: StoredMetadata, _ exchange: Exchange, _ stored: [StoredMetadata], _ revision: Revision
  ) -> StoreChanges.Copy? {
    guard exchange.request.method == .get, stored.count < variantLimit, !matches(fresh, exchange.request),
      !forbidsStoring(of: exchange), !Vary(fresh.response.headerFields).matchesNothing
    else { return nil }
    var copy = fresh
    copy.request = storedRequest(exchange.request, selectedBy: Vary(fresh.response.headerFields), part: nil)
    copy.revision = revision
    return StoreChanges.Copy(confirmed, variant: SelectingFields(of: copy).variant, copy)
  }

  /// Returns whether no fields of a response may be stored. A 304 then confirms the body once, and the next use revalidates
  /// again.
  func forbidsStoring(of exchange: Exchange) -> Bool {
    forbidsStoringApartFromCookies(of: exchange) || isForOneSession(exchange, exchange.summary)
  }

  private func forbidsStoringApartFromCookies(of exchange: Exchange) -> Bool {
    // A response to one user is shared only if it says so, also when it is a 304.
    exchange.summary.directives.noStore || exchange.summary.forbidsSharedStorage || needsPermission(exchange)
      || exchange.requestDirectives.noStore
  }

  /// Returns the stored response with the fields of a 304 or of a response to HEAD, and with new times. Its body, length and
  /// revision stay the same.
  func updatedMetadata(_ metadata: StoredMetadata, by exchange: Exchange) -> StoredMetadata {
    guard !forbidsStoringApartFromCookies(of: exchange) else { return metadata }
    var response = metadata.response
    response.headerFields = response.headerFields.updated(by: exchange.response.headerFields)
    let summary = ResponseSummary(response.headerFields, rules, responseTime: exchange.responseTime)
    // A 304 that sets no cookie may leave the lifetime to the stored response, whose permission it confirms.
    guard !isForOneSession(exchange, exchange.summary.setsCookie ? exchange.summary : summary) else { return metadata }
    let freshness = summary.freshness(of: response, requestTime: exchange.requestTime, rules)
    response.headerFields = response.headerFields.without(summary.leftOut)
    let request = request(selecting: metadata, as: response, exchange)
    // Created in one step, because changing one property copies all of them.
    return StoredMetadata(
      request: request, response: response, trailers: metadata.trailers, requestTime: exchange.requestTime,
      responseTime: exchange.responseTime, bodyLength: metadata.bodyLength, revision: metadata.revision, freshness: freshness,
      expiration: StatusRule(response.status.code) == .whileFresh ? .at(freshness.freshUntil) : metadata.expiration)
  }

  /// Returns the request under which a confirmed response is stored. Its selecting fields become those of the new request.
  /// Another variant keeps its own request, unless different fields select now.
  private func request(selecting metadata: StoredMetadata, as response: HTTPResponse, _ exchange: Exchange) -> HTTPRequest {
    let (kept, new) = (metadata.request, exchange.request)
    if matches(metadata, new) {
      // The same fields select, and both requests have equal values for them.
      if !exchange.response.headerFields.contains(.vary), kept.path == new.path, kept.authority == new.authority,
        kept.scheme == new.scheme
      {
        return kept
      }
    } else if Vary(metadata.response.headerFields).names == Vary(response.headerFields).names {
      return kept
    }
    return storedRequest(new, selectedBy: Vary(response.headerFields), part: StoredPart(metadata)?.bytes)
  }
}
