internal import CacheCore
internal import HTTPTypes

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
    if hasOwn {
      line = Array(headerFields[fields: .ifNoneMatch].map(\.bytes).joined(separator: [0x2C, 0x20]))
    }
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

  /// Returns a request for the bytes after a stored part, or for the whole response if it has changed (RFC 9110 §13.1.5).
  func requestingRest(of metadata: StoredMetadata) -> HTTPRequest {
    guard headerFields.hasCapacity(for: 2), let part = StoredPart(metadata), let tag = metadata.response.headerFields.first(.eTag)
    else { return self }
    var request = self
    request.headerFields.append(HTTPField(name: .range, value: "bytes=\(part.bytes.upperBound)-"))
    request.headerFields.append(tag.renamed(.ifRange))
    return request
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
