internal import CacheCore
internal import HTTPTypes

// The updates of stored fields by a 304, and by a response to HEAD.
extension ETagValidator {
  /// Returns the verdict on a 304 (RFC 9111 §4.3.3, §4.3.4).
  ///
  /// A 304 confirms the stored response that it names, or the only one that was revalidated. It is the caller's own response if
  /// it names one of the caller's tags. In any other case, one more request is sent without the conditions that the plan added.
  func notModified(
    _ received: JudgedResponse, fallback: Int?, stored: [StoredMetadata], revision: Revision
  ) -> ValidationVerdict {
    if let confirmed = confirmed(by: received, fallback: fallback, stored: stored) {
      let fresh = updatedMetadata(stored[confirmed], by: received)
      var changes = alongside(confirmed, received, stored)
      changes.copy = copy(of: confirmed, fresh, received, stored, revision)
      return .update(confirmed, fresh, changes)
    }
    guard received.request.hasOwnCondition, isCallers(received) else {
      return .refetch(received.sent.withConditions(of: received.request))
    }
    return .pass(.none, shareable: !forbidsStoring(of: received))
  }

  /// Returns whether the 304 applies to the caller's own condition: the plan added nothing to it, or the 304 names one of the
  /// caller's tags.
  private func isCallers(_ received: JudgedResponse) -> Bool {
    let (own, sent) = (received.request.headerFields, received.sent.headerFields)
    let isUntouched = [HTTPField.Name.ifNoneMatch, .ifModifiedSince].allSatisfy { name in
      own[fields: name].map(\.bytes) == sent[fields: name].map(\.bytes)
    }
    return isUntouched
      || EntityTag.validator(of: received.response.headerFields).map { EntityTagList(.ifNoneMatch, of: own).names($0) } ?? false
  }

  private func confirmed(by received: JudgedResponse, fallback: Int?, stored: [StoredMetadata]) -> Int? {
    let (fields, sent) = (received.response.headerFields, received.sent)
    guard sent.hasOwnCondition else { return nil }
    let preferred = stored.count > 1 ? [fallback, selected(by: received.request, from: stored)].compactMap { $0 } : []
    let order = preferred + stored.indices
    let tag = EntityTag.validator(of: fields)
    return order.first { index in
      let isOwn = matches(stored[index], received.request)
      guard isOwn || mayConfirm(stored[index], received.request),
        sent.revalidates(stored[index], apartFrom: received.request), canServe(stored[index], received.request)
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
  private func alongside(_ confirmed: Int, _ received: JudgedResponse, _ stored: [StoredMetadata]) -> StoreChanges {
    guard stored.count > 1, let tag = EntityTag.strong(of: received.response.headerFields) else { return .none }
    let same = stored.indices.filter { index in
      index != confirmed && matches(stored[index], received.request)
        && stored[index].response.headerFields.hasCapacity(for: received.response.headerFields.count)
        && EntityTag.strong(of: stored[index].response.headerFields)?.stronglyMatches(tag) == true
    }
    return StoreChanges(updates: Dictionary(uniqueKeysWithValues: same.map { ($0, updatedMetadata(stored[$0], by: received)) }))
  }

  /// Returns a copy of another variant's response that the 304 has named. Stored under this request's selecting fields, it serves
  /// the next equal request (RFC 9111 §4.1, §4.3.3). No other response is removed for it.
  private func copy(
    of confirmed: Int, _ fresh: StoredMetadata, _ received: JudgedResponse, _ stored: [StoredMetadata], _ revision: Revision
  ) -> StoreChanges.Copy? {
    guard received.request.method == .get, stored.count < variantLimit, !matches(fresh, received.request),
      !forbidsStoring(of: received), !Vary(fresh.response.headerFields).matchesNothing
    else { return nil }
    var copy = fresh
    copy.request = storedRequest(received.request, selectedBy: Vary(fresh.response.headerFields), part: nil)
    copy.revision = revision
    return StoreChanges.Copy(confirmed, variant: SelectingFields(of: copy).variant, copy)
  }

  /// Returns whether no fields of a response may be stored. A 304 then confirms the body once, and the next use revalidates
  /// again.
  func forbidsStoring(of received: JudgedResponse) -> Bool {
    forbidsStoringApartFromCookies(of: received) || isForOneSession(received, received.summary)
  }

  private func forbidsStoringApartFromCookies(of received: JudgedResponse) -> Bool {
    // A response to one user is shared only if it says so, also when it is a 304.
    received.summary.directives.noStore || received.summary.forbidsSharedStorage || needsPermission(received)
      || received.requestDirectives.noStore
  }

  /// Returns the stored response with the fields of a 304 or of a response to HEAD, and with new times. Its body, length and
  /// revision stay the same.
  func updatedMetadata(_ metadata: StoredMetadata, by received: JudgedResponse) -> StoredMetadata {
    guard !forbidsStoringApartFromCookies(of: received) else { return metadata }
    var response = metadata.response
    response.headerFields = response.headerFields.updated(by: received.response.headerFields)
    let summary = ResponseSummary(response.headerFields, rules, responseTime: received.responseTime)
    // A 304 that sets no cookie may leave the lifetime to the stored response, whose permission it confirms.
    guard !isForOneSession(received, received.summary.setsCookie ? received.summary : summary) else { return metadata }
    let freshness = summary.freshness(of: response, requestTime: received.requestTime, rules)
    response.headerFields = response.headerFields.without(summary.leftOut)
    let request = request(selecting: metadata, as: response, received)
    // Created in one step, because changing one property copies all of them.
    return StoredMetadata(
      request: request, response: response, trailers: metadata.trailers, requestTime: received.requestTime,
      responseTime: received.responseTime, bodyLength: metadata.bodyLength, revision: metadata.revision, freshness: freshness,
      expiration: StatusRule(response.status.code) == .whileFresh ? .at(freshness.freshUntil) : metadata.expiration)
  }

  /// Returns the request under which a confirmed response is stored. Its selecting fields become those of the new request.
  /// Another variant keeps its own request, unless different fields select now.
  private func request(selecting metadata: StoredMetadata, as response: HTTPResponse, _ received: JudgedResponse) -> HTTPRequest {
    let (kept, new) = (metadata.request, received.request)
    if matches(metadata, new) {
      // The same fields select, and both requests have equal values for them.
      if !received.response.headerFields.contains(.vary), kept.path == new.path, kept.authority == new.authority,
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
  /// Returns the updates of a HEAD's 200 to the stored responses that the GET would have selected (RFC 9111 §4.3.5). Equal
  /// validators and length update them. Otherwise they become stale. Parts that it contradicts become stale too.
  func headUpdates(of received: JudgedResponse, stored: [StoredMetadata]) -> [Int: StoredMetadata] {
    guard !forbidsStoring(of: received) else { return [:] }
    var updates: [Int: StoredMetadata] = [:]
    for (index, metadata) in stored.enumerated() {
      guard metadata.isPart || metadata.response.status == .ok, matches(metadata, received.request) else { continue }
      guard isSame(received.response.headerFields, metadata) else {
        let freshness = metadata.freshness.markedStale(at: received.responseTime)
        guard freshness != metadata.freshness else { continue }
        var stale = metadata
        stale.freshness = freshness
        updates[index] = stale
        continue
      }
      // The fields of a part describe its range.
      if !metadata.isPart { updates[index] = updatedMetadata(metadata, by: received) }
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
    if metadata.isPart { return ContentRange(stored)?.completeLength.map { "\($0)" == length.value } ?? true }
    if let known = stored.first(.contentLength) { return known.bytes == length.bytes }
    return metadata.bodyLength.map { "\($0)" == length.value } ?? true
  }
}

extension HTTPFields {
  /// Returns the fields without those that concern a single connection (RFC 9111 §3.1, RFC 9110 §7.6.1).
  ///
  /// It also removes the fields that `Connection` lists, except those that caches depend on. A sender must not list those, and
  /// removing them would hide a `no-cache`.
  func withoutHopByHop() -> HTTPFields { endToEnd(keeping: Self.isDecisive) }

  /// Returns the fields except those with the given names in lower case.
  func without(_ names: Set<String>) -> HTTPFields { names.isEmpty ? self : removing(names.contains) }

  /// Returns these stored fields as a 304 updates them (RFC 9111 §3.2). A field of the 304 replaces all stored values of that
  /// name.
  ///
  /// Fields that describe the stored bytes remain, as does `ETag`, which labels them; no others may be excluded (§3.2). `Date`
  /// and `Age` state the age of one message, so the earlier values are always removed.
  func updated(by notModified: HTTPFields) -> HTTPFields {
    let newFields = notModified.withoutHopByHop().removing(Self.isTiedToBytes)
    if let updated = updated(atEndBy: newFields) { return updated }
    var merged = removing { $0 == "date" || $0 == "age" || newFields.names($0) }
    merged.append(contentsOf: newFields)
    return merged
  }

  /// Returns the updated fields if an earlier 304 has already moved the same fields to the end, or `nil` otherwise. Equal values
  /// stay in place, usually all except the date.
  private func updated(atEndBy newFields: HTTPFields) -> HTTPFields? {
    let end = count - newFields.count
    guard end >= 0 else { return nil }
    for offset in 0..<newFields.count where self[end + offset].name.rawName != newFields[offset].name.rawName { return nil }
    for position in 0..<end {
      let name = self[position].name.canonicalName
      if name == "date" || name == "age" || newFields.names(name) { return nil }
    }
    var updated = self
    for offset in 0..<newFields.count {
      let (known, line) = (self[end + offset], newFields[offset])
      if known.hasSameValue(as: line) { continue }
      // `HTTPFields` would ignore an assignment of an equal string with different bytes.
      guard known != line else { return nil }
      updated[end + offset] = line
    }
    return updated
  }

  /// Returns whether there is a field with a name in lower case.
  private func names(_ name: String) -> Bool { (0..<count).contains { self[$0].name.canonicalName == name } }

  /// Returns whether `more` fields can be added, because `HTTPFields` traps at 65,535 fields.
  func hasCapacity(for more: Int) -> Bool { count + more < Int(UInt16.max) }

  /// Returns whether caches depend on a field, given its name in lower case.
  static func isDecisive(_ name: String) -> Bool {
    switch name.utf8.count {
    case 3: name == "age"
    case 4: name == "date" || name == "etag" || name == "vary"
    case 7: name == "expires"
    case 13: name == "cache-control" || name == "content-range" || name == "last-modified"
    default: false
    }
  }

  /// Returns whether a field belongs to the stored bytes regardless of later metadata: their coding, range, length and label (RFC
  /// 9111 §3.2). The `Content-Digest` of a response without content is that of empty content (RFC 9530 §2).
  static func isTiedToBytes(_ name: String) -> Bool {
    switch name.utf8.count {
    case 4: name == "etag"
    case 13: name == "content-range"
    case 14: name == "content-length" || name == "content-digest"
    case 16: name == "content-encoding"
    default: false
    }
  }

  /// Returns whether a field describes or labels the representation (RFC 9110 §8).
  static func describesBytes(_ name: String) -> Bool {
    switch name.utf8.count {
    case 6: name == "digest"
    case 11: name == "content-md5" || name == "repr-digest"
    case 12: name == "content-type"
    case 16: name == "content-language" || isTiedToBytes(name)
    default: isTiedToBytes(name)
    }
  }
}
