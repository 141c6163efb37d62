public import CacheCore
public import HTTPTypes

extension HTTPRequest {
  /// Whether the caller's request has its own conditions or a range (RFC 9110 §13.1, §14.2).
  var hasConditionsOrRange: Bool {
    let fields = headerFields
    return (0..<fields.count).contains { Self.isCondition(fields[$0].name.canonicalName) }
  }

  private static func isCondition(_ name: String) -> Bool {
    switch name.utf8.count {
    case 5: name == "range"
    case 8: name == "if-match" || name == "if-range"
    case 13: name == "if-none-match"
    case 17: name == "if-modified-since"
    case 19: name == "if-unmodified-since"
    default: false
    }
  }

  /// Whether the caller revalidates a response of its own.
  var hasOwnCondition: Bool { headerFields.contains(.ifNoneMatch) || headerFields.contains(.ifModifiedSince) }

  /// Returns the request without the caller's conditions and range.
  func withoutConditionsAndRange() -> HTTPRequest {
    var request = self
    request.headerFields = headerFields.removing(Self.isCondition)
    return request
  }

  /// Returns the request with the conditions and the range of `original`, without those that a plan added.
  func withConditions(of original: HTTPRequest) -> HTTPRequest {
    var request = withoutConditionsAndRange()
    request.headerFields.append(contentsOf: original.headerFields.filter { Self.isCondition($0.name.canonicalName) })
    return request
  }

  /// Returns the request with `Cache-Control: no-cache`, so that no intermediate cache serves it (RFC 9111 §5.2.1.4). A
  /// `Cache-Control` field of the caller is left unchanged.
  func pastAllCaches() -> HTTPRequest {
    guard !headerFields.contains(.cacheControl), headerFields.hasCapacity(for: 1) else { return self }
    var request = self
    request.headerFields[.cacheControl] = "no-cache"
    return request
  }
}

extension HTTPRequest {
  /// The maximum number of tags in a request, and the maximum length of the field, because origins limit the length of a line.
  private static let maximumTagCount = 16
  private static let maximumFieldLength = 4_096

  /// Returns the request with conditions that revalidate stored responses (RFC 9111 §4.3.1). The validators are the origin's own,
  /// byte for byte.
  ///
  /// The stored tags follow the caller's own in one list. The stored date replaces the caller's, which ``ETagValidator``
  /// evaluates when the response is known. A 304 therefore always refers to a stored response or names the caller's tag.
  ///
  /// The request is returned unchanged if there is no validator, or if it forbids storing (§5.2.1.5), because the result of a 304
  /// could not be stored.
  ///
  /// - Parameters:
  ///   - selected: The stored response that the request selects.
  ///   - others: Other stored responses of the resource. They are revalidated only by tag, and only if the caller has no
  ///     condition.
  ///   - directives: The request's directives.
  func revalidating(_ selected: StoredMetadata?, and others: [StoredMetadata], _ directives: CacheControl) -> HTTPRequest {
    guard !directives.noStore, headerFields.hasCapacity(for: 2) else { return self }
    if let selected, revalidatesOnly(selected) { return revalidatingByDate(selected) }
    let own = EntityTagList(.ifNoneMatch, of: headerFields)
    let hasTags = headerFields.contains(.ifNoneMatch)
    guard !own.matchesAny, own.isWellFormed, selected != nil || !hasOwnCondition else { return self }
    let tag = selected?.response.headerFields.first(.eTag).flatMap { EntityTag.isValidator($0) ? $0 : nil }
    var request = self
    if tag != nil || !hasTags {
      request.add([tag].compactMap { $0 } + (hasTags ? [] : others.compactMap { $0.listableTag }), own)
    }
    // If only the caller's tags decide, the origin ignores dates (RFC 9110 §13.1.3).
    guard let selected, tag != nil || !hasTags else { return request }
    return request.revalidatingByDate(selected, orByNone: tag != nil)
  }

  /// Returns whether the caller's only tag is the stored one, so that there is no tag to add.
  func revalidatesOnly(_ metadata: StoredMetadata) -> Bool {
    guard let own = headerFields.single(.ifNoneMatch), let tag = metadata.response.headerFields.first(.eTag) else { return false }
    return own.hasSameValue(as: tag) && EntityTag.isListed(tag)
  }

  /// - Parameter removesDate: Whether to remove the caller's date if the stored response has none.
  private func revalidatingByDate(_ selected: StoredMetadata, orByNone removesDate: Bool = true) -> HTTPRequest {
    var request = self
    if let modified = selected.response.headerFields.first(.lastModified), !modified.value.isEmpty {
      request.headerFields.replace(.ifModifiedSince, with: modified.renamed(.ifModifiedSince))
    } else if removesDate {
      request.headerFields[.ifModifiedSince] = nil
    }
    return request
  }

  /// Adds tags to `If-None-Match`. An invalid tag is added only if it stays alone.
  private mutating func add(_ tags: [HTTPField], _ own: EntityTagList) {
    // Usually the caller's own tag is the stored one, or only one response is revalidated, so there is little to do.
    let tags = tags.filter { field in EntityTag(field).map { !own.tags.contains(where: $0.weaklyMatches) } ?? false }
    guard let first = tags.first else { return }
    let hasOwn = headerFields.contains(.ifNoneMatch)
    if !hasOwn, tags.count == 1 { return headerFields.append(first.renamed(.ifNoneMatch)) }
    var line: [UInt8]?
    if hasOwn { line = Array(headerFields[fields: .ifNoneMatch].map(\.bytes).joined(separator: [0x2C, 0x20])) }
    var known = own.tags
    var count = own.tags.count
    for field in tags {
      guard let tag = EntityTag(field), !known.contains(where: tag.weaklyMatches) else { continue }
      let bytes = field.bytes
      guard var text = line else {
        line = bytes
        (known, count) = ([tag], 1)
        // Tags that follow an invalid one would become part of it.
        if !EntityTag.isListed(field) { break }
        continue
      }
      guard EntityTag.isListed(field), count < Self.maximumTagCount, text.count + bytes.count + 2 <= Self.maximumFieldLength
      else {
        continue
      }
      text += [0x2C, 0x20]
      text += bytes
      line = text
      known.append(tag)
      count += 1
    }
    guard let line, count > own.tags.count else { return }
    headerFields.replace(.ifNoneMatch, with: HTTPField(name: .ifNoneMatch, value: line))
  }

  /// Returns whether the conditions of this request, which replace those of `original`, revalidate `metadata`.
  func revalidates(_ metadata: StoredMetadata, apartFrom original: HTTPRequest) -> Bool {
    let stored = metadata.response.headerFields
    if headerFields.contains(.ifNoneMatch) {
      guard let tag = stored.first(.eTag), EntityTag.isValidator(tag) else { return false }
      // An invalid tag was sent alone.
      if let line = headerFields.single(.ifNoneMatch), line.hasSameValue(as: tag) { return true }
      return EntityTag(tag).map { EntityTagList(.ifNoneMatch, of: headerFields).names($0) } ?? false
    }
    guard let date = headerFields.first(.ifModifiedSince) else { return false }
    return stored.first(.lastModified)?.hasSameValue(as: date) ?? false
  }
}

extension StoredMetadata {
  /// The `ETag` line, if it can be sent in a list with other tags.
  fileprivate var listableTag: HTTPField? {
    response.headerFields.first(.eTag).flatMap { EntityTag.isListed($0) ? $0 : nil }
  }
}

extension ETagValidator {
  /// Returns the fields that make a request conditional on a stored response: `If-None-Match`, `If-Modified-Since`, or both (RFC
  /// 9110 §13.1).
  ///
  /// ```swift
  /// for field in validator.conditionalHeaders(for: metadata) {
  ///   urlRequest.setValue(field.value, forHTTPHeaderField: field.name.rawName)
  /// }
  /// ```
  ///
  /// A 304 response to that request confirms the stored response. The result is empty if the response has neither `ETag` nor
  /// `Last-Modified`.
  public func conditionalHeaders(for metadata: StoredMetadata) -> HTTPFields {
    HTTPRequest(method: .get, scheme: nil, authority: nil, path: nil)
      .revalidating(metadata, and: [], CacheControl()).headerFields
  }
}

/// The caller's own conditions, as a cache evaluates them on a stored response (RFC 9111 §4.3.2, RFC 9110 §13.2.2).
struct Preconditions {
  let request: HTTPRequest

  /// Returns whether the request has conditions that a cache must leave to the origin (RFC 9111 §4.3.2).
  static func areOrigins(of request: HTTPRequest) -> Bool {
    request.headerFields.contains(.ifMatch) || request.headerFields.contains(.ifUnmodifiedSince)
  }

  /// Returns whether the caller already has the stored response, so that the reply is a 304. If there is an `If-None-Match`, it
  /// alone decides.
  func isNotModified(_ metadata: StoredMetadata) -> Bool {
    let fields = metadata.response.headerFields
    // Conditions do not apply to a response that is not successful (RFC 9110 §13.2.1).
    guard (200...299).contains(metadata.response.status.code) else { return false }
    if request.headerFields.contains(.ifNoneMatch) {
      return request.revalidatesOnly(metadata)
        || EntityTagList(.ifNoneMatch, of: request.headerFields).names(fields.first(.eTag).flatMap { EntityTag($0) })
    }
    guard let since = date(.ifModifiedSince, metadata) else { return false }
    // Without `Last-Modified`, the response has not changed since its `Date` or its arrival (RFC 9111 §4.3.2). The client can
    // state the time of arrival only in whole seconds.
    let arrival = HTTPDate(metadata.responseTime).timestamp
    return (Self.modified(metadata) ?? fields.date(receivedAt: metadata.responseTime) ?? arrival) <= since
  }

  /// Returns whether a range may be served: there is no `If-Range`, or it has a strong validator of the stored bytes (RFC 9110
  /// §13.1.5).
  func allowsRange(_ metadata: StoredMetadata) -> Bool {
    let fields = request.headerFields
    guard fields.contains(.ifRange) else { return true }
    let lines = fields[fields: .ifRange]
    guard lines.count == 1 else { return false }
    let stored = metadata.response.headerFields
    if let date = HTTPDate(lines[0].value, receivedAt: metadata.responseTime) {
      return date.timestamp == Self.strongDate(metadata)
    }
    guard lines[0].bytes.contains(UInt8(ascii: "\"")), let tag = EntityTag(lines[0]) else { return false }
    return stored.single(.eTag).flatMap { EntityTag($0) }.map(tag.stronglyMatches) ?? false
  }

  /// Returns the date of a condition. Only a single, valid line is a condition (RFC 9110 §13.1.3).
  private func date(_ name: HTTPField.Name, _ metadata: StoredMetadata) -> Timestamp? {
    guard request.headerFields.contains(name) else { return nil }
    let lines = request.headerFields[values: name]
    return lines.count == 1 ? HTTPDate(lines[0], receivedAt: metadata.responseTime)?.timestamp : nil
  }

  private static func modified(_ metadata: StoredMetadata) -> Timestamp? {
    metadata.response.headerFields.first(.lastModified).flatMap {
      HTTPDate($0.value, receivedAt: metadata.responseTime)?.timestamp
    }
  }

  /// Returns `Last-Modified` if it is a strong validator: at least one second earlier than `Date` (RFC 9110 §8.8.2.2).
  private static func strongDate(_ metadata: StoredMetadata) -> Timestamp? {
    let fields = metadata.response.headerFields
    guard fields.single(.lastModified) != nil, let modified = modified(metadata),
      let date = fields.date(receivedAt: metadata.responseTime), date - modified >= .seconds(1)
    else { return nil }
    return modified
  }
}

extension HTTPRequest.Method {
  /// Whether a request with this method changes nothing at the origin (RFC 9110 §9.2.1). An unknown method does not count as
  /// safe.
  var isSafe: Bool { self == .get || self == .head || self == .options || self == .trace }
}
