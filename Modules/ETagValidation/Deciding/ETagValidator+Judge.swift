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
      if reading, exchange.status == 304 { return notModified(exchange, fallback: fallback, stored: stored, revision: revision) }
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
  private func replaces(_ metadata: StoredMetadata, _ variant: String, _ exchange: Exchange, _ other: StoredMetadata) -> Bool {
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

extension ETagValidator {
  /// Returns the verdict on a 304 (RFC 9111 §4.3.3, §4.3.4).
  ///
  /// A 304 confirms the stored response that it names, or the only one that was revalidated. It is the caller's own response if
  /// it names one of the caller's tags. In any other case, one more request is sent without the conditions that the plan added.
  func notModified(_ exchange: Exchange, fallback: Int?, stored: [StoredMetadata], revision: Revision) -> ValidationVerdict {
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
  private func confirms(_ notModified: HTTPFields, _ tag: EntityTag?, _ stored: HTTPFields, _ sent: HTTPRequest) -> Bool {
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
    return StoreChanges(updates: Dictionary(uniqueKeysWithValues: same.map { ($0, updatedMetadata(stored[$0], by: exchange)) }))
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

extension ETagValidator {
  /// Returns the updates of a HEAD's 200 to the stored responses that the GET would have selected (RFC 9111 §4.3.5). Equal
  /// validators and length update them. Otherwise they become stale.
  func headUpdates(of exchange: Exchange, stored: [StoredMetadata]) -> [Int: StoredMetadata] {
    guard !forbidsStoring(of: exchange) else { return [:] }
    var updates: [Int: StoredMetadata] = [:]
    for (index, metadata) in stored.enumerated() {
      guard !metadata.isPart, metadata.response.status == .ok, matches(metadata, exchange.request) else { continue }
      guard isSame(exchange.response.headerFields, metadata) else {
        let freshness = metadata.freshness.markedStale(at: exchange.responseTime)
        guard freshness != metadata.freshness else { continue }
        var stale = metadata
        stale.freshness = freshness
        updates[index] = stale
        continue
      }
      updates[index] = updatedMetadata(metadata, by: exchange)
    }
    return updates
  }

  private func isSame(_ fields: HTTPFields, _ metadata: StoredMetadata) -> Bool {
    let stored = metadata.response.headerFields
    guard stored.hasCapacity(for: fields.count) else { return false }
    if let tag = fields.first(.eTag).flatMap({ EntityTag($0) }) {
      guard let known = stored.first(.eTag).flatMap({ EntityTag($0) }), tag.weaklyMatches(known) else { return false }
    }
    if let modified = fields.first(.lastModified), modified.bytes != stored.first(.lastModified)?.bytes { return false }
    guard let length = fields.first(.contentLength) else { return true }
    if let known = stored.first(.contentLength) { return known.bytes == length.bytes }
    return metadata.bodyLength.map { "\($0)" == length.value } ?? true
  }
}
