internal import CacheCore
internal import HTTPTypes

extension ETagValidator {
  /// A 304 (RFC 9111 §4.3.3, §4.3.4). It confirms the stored answer that it names, or the only one that was asked about; the
  /// caller's it is when it names a tag of the caller's own. One that does neither leads to one more request, without what the
  /// plan has added.
  func notModified(
    _ exchange: Exchange, fallback: Int?, stored: [StoredMetadata], revision: Revision
  ) -> ValidationVerdict {
    if let confirmed = confirmed(by: exchange, fallback: fallback, stored: stored) {
      let fresh = freshened(stored[confirmed], by: exchange)
      var changes = alongside(confirmed, exchange, stored)
      changes.copy = copy(of: confirmed, fresh, exchange, stored, revision)
      return .update(confirmed, fresh, changes)
    }
    guard exchange.request.hasOwnCondition, isCallers(exchange) else {
      return .refetch(exchange.sent.withConditions(of: exchange.request))
    }
    return .pass(.none, shareable: !CacheControl(exchange.response.headerFields).noStore)
  }

  /// Whether the 304 answers the caller's own condition: nothing was added to it, or it names one of the caller's tags.
  private func isCallers(_ exchange: Exchange) -> Bool {
    let (own, sent) = (exchange.request.headerFields, exchange.sent.headerFields)
    let isUntouched = [HTTPField.Name.ifNoneMatch, .ifModifiedSince].allSatisfy { name in
      own[fields: name].map(\.bytes) == sent[fields: name].map(\.bytes)
    }
    return isUntouched
      || EntityTag.asked(of: exchange.response.headerFields).map { EntityTagList(.ifNoneMatch, of: own).names($0) } ?? false
  }

  private func confirmed(by exchange: Exchange, fallback: Int?, stored: [StoredMetadata]) -> Int? {
    let (fields, sent) = (exchange.response.headerFields, exchange.sent)
    guard sent.hasOwnCondition else { return nil }
    let preferred = stored.count > 1 ? [fallback, selected(by: exchange.request, from: stored)].compactMap { $0 } : []
    let order = preferred + stored.indices
    let tag = EntityTag.asked(of: fields)
    return order.first { index in
      let isOwn = matches(stored[index], exchange.request)
      guard isOwn || mayConfirm(stored[index], exchange.request),
        sent.asks(about: stored[index], apartFrom: exchange.request), canAnswer(stored[index], exchange.request)
      else { return false }
      // Another variant is confirmed by its own strong tag alone, which the 304 names or all that was asked about: two may well
      // be of one date.
      if !isOwn, tag.map(\.isWeak) ?? !Self.asksAboutOneTag(sent) { return false }
      return confirms(fields, tag, stored[index].response.headerFields, sent)
    }
  }

  /// A part confirms nothing to who asks for what it does not hold.
  private func canAnswer(_ metadata: StoredMetadata, _ request: HTTPRequest) -> Bool {
    guard metadata.isPart else { return true }
    return request.singleRange.map { StoredPart(metadata)?.covered($0) != nil } ?? false
  }

  private static func asksAboutOneTag(_ sent: HTTPRequest) -> Bool {
    let asked = EntityTagList(.ifNoneMatch, of: sent.headerFields)
    return !asked.matchesAny && asked.tags.count == 1
  }

  /// Whether a 304 speaks of the stored answer: by its tag; without one when nothing else was asked about; by `Last-Modified`
  /// where only that was asked about.
  ///
  /// The tags are compared weakly, as the origin itself compares what `If-None-Match` names (RFC 9110 §13.1.2). A strong
  /// comparison would fetch every compressed file twice: origins mark the tag of the compressed 200 as weak, and not that of the
  /// 304, which has no bytes to compress.
  private func confirms(
    _ notModified: HTTPFields, _ tag: EntityTag?, _ stored: HTTPFields, _ sent: HTTPRequest
  ) -> Bool {
    guard stored.hasRoom(for: notModified.count) else { return false }
    if let tag { return EntityTag.asked(of: stored).map(tag.weaklyMatches) ?? false }
    // Asked by a tag, the origin has not looked at the date (RFC 9110 §13.1.3).
    if sent.headerFields.contains(.ifNoneMatch) { return Self.asksAboutOneTag(sent) }
    guard let modified = notModified.first(.lastModified) else { return true }
    return modified.bytes == stored.first(.lastModified)?.bytes
  }

  /// What else the 304 freshens: what the request could have been answered with, of the same strong validator (RFC 9111 §4.3.4).
  private func alongside(_ confirmed: Int, _ exchange: Exchange, _ stored: [StoredMetadata]) -> StoreChanges {
    guard stored.count > 1, let tag = EntityTag.strong(of: exchange.response.headerFields) else { return .none }
    let same = stored.indices.filter { index in
      index != confirmed && matches(stored[index], exchange.request)
        && stored[index].response.headerFields.hasRoom(for: exchange.response.headerFields.count)
        && EntityTag.strong(of: stored[index].response.headerFields)?.stronglyMatches(tag) == true
    }
    return StoreChanges(
      updates: Dictionary(uniqueKeysWithValues: same.map { ($0, freshened(stored[$0], by: exchange)) }))
  }

  /// Another variant's answer that the 304 has named is this request's too: filed under its selecting fields, it answers the next
  /// one (RFC 9111 §4.1, §4.3.3). Nobody gives way for it.
  private func copy(
    of confirmed: Int, _ fresh: StoredMetadata, _ exchange: Exchange, _ stored: [StoredMetadata], _ revision: Revision
  ) -> StoreChanges.Copy? {
    guard exchange.request.method == .get, stored.count < variantLimit, !matches(fresh, exchange.request),
      !keepsNothing(of: exchange), !Vary(fresh.response.headerFields).matchesNothing
    else { return nil }
    var copy = fresh
    copy.request = storedRequest(exchange.request, selectedBy: fresh.response, part: nil)
    copy.revision = revision
    return StoreChanges.Copy(confirmed, variant: SelectingFields(of: copy).variant, copy)
  }

  /// Whether nothing of an answer's fields may be stored: a 304 then confirms the body once, and the next use asks again.
  func keepsNothing(of exchange: Exchange) -> Bool {
    keepsNothing(of: exchange, rules.directives(of: exchange.response.headerFields))
  }

  private func keepsNothing(of exchange: Exchange, _ directives: ResponseDirectives) -> Bool {
    // What answers one user's credentials is for everybody only where it says so (§3.5), as with what is stored.
    let isOneUsers = !directives.allowsAuthorised && exchange.request.headerFields.contains(.authorization)
    return directives.stated.noStore || directives.isOthers || isOneUsers || CacheControl(request: exchange.request).noStore
  }

  /// The stored answer with the fields of the 304, or of a HEAD's answer, and new times; body, length and revision stay.
  func freshened(_ metadata: StoredMetadata, by exchange: Exchange) -> StoredMetadata {
    let news = rules.directives(of: exchange.response.headerFields)
    guard !keepsNothing(of: exchange, news) else { return metadata }
    var response = metadata.response
    response.headerFields = response.headerFields.updated(by: exchange.response.headerFields)
    let isAllNews = saysAll(exchange.response.headerFields, of: metadata.response.headerFields)
    let directives = isAllNews ? news : rules.directives(of: response.headerFields)
    let freshness = FreshnessRules(rules: rules).freshness(
      of: response, directives, requestTime: exchange.requestTime, responseTime: exchange.responseTime)
    response.headerFields.leaveOut(directives.leftOut)
    let request = request(selecting: metadata, as: response, exchange)
    // Made at once: a change of one part copies all of them.
    return StoredMetadata(
      request: request, response: response, trailers: metadata.trailers, requestTime: exchange.requestTime,
      responseTime: exchange.responseTime, bodyLength: metadata.bodyLength, revision: metadata.revision, freshness: freshness,
      expiration: StatusRule(response.status.code) == .whileFresh ? .at(freshness.freshUntil) : metadata.expiration)
  }

  /// Whether the directives of a 304 are those of the answer that it updates, since both have no others.
  private func saysAll(_ notModified: HTTPFields, of stored: HTTPFields) -> Bool {
    notModified.contains(.cacheControl)
      && rules.targets.allSatisfy { !notModified.contains($0) && !stored.contains($0) }
  }

  /// The request under which a confirmed answer is kept. Its selecting fields are the new request's from now on. Another variant
  /// keeps its own, unless other fields select now, which it does not have.
  private func request(selecting metadata: StoredMetadata, as response: HTTPResponse, _ exchange: Exchange) -> HTTPRequest {
    let (kept, new) = (metadata.request, exchange.request)
    if matches(metadata, new) {
      // The same fields select, and the two have them in common.
      if !exchange.response.headerFields.contains(.vary), kept.path == new.path, kept.authority == new.authority,
        kept.scheme == new.scheme
      {
        return kept
      }
    } else if Vary(metadata.response.headerFields).names == Vary(response.headerFields).names {
      return kept
    }
    return storedRequest(new, selectedBy: response, part: StoredPart(metadata)?.range)
  }
}
