internal import CacheCore
internal import HTTPTypes

extension HTTPRequest {
  /// No question names more tags than this, and none is longer: origins limit the length of a line.
  private static let mostTags = 16
  private static let longestQuestion = 4_096

  /// The request, asking whether one of the stored answers is still current (RFC 9111 §4.3.1): the origin's own strings, byte for
  /// byte.
  ///
  /// The tags follow the caller's own in one list, and the date takes the place of the caller's, which is evaluated here once the
  /// answer is known: so a 304 always speaks of something that is stored, or names the caller's tag. Unchanged when there is
  /// nothing to ask with, and when the request forbids storing: then a 304 could not be kept either (§5.2.1.5).
  ///
  /// - Parameters:
  ///   - selected: what the request selects.
  ///   - others: what else is stored of the resource; only asked about by tags, and only where the caller has no condition of its
  ///     own.
  ///   - directives: the request's.
  func asking(about selected: StoredMetadata?, and others: [StoredMetadata], _ directives: CacheControl) -> HTTPRequest {
    guard !directives.noStore, headerFields.hasRoom(for: 2) else { return self }
    if let selected, asksOnly(about: selected) { return askingByDate(about: selected) }
    let own = EntityTagList(.ifNoneMatch, of: headerFields)
    let hasTags = headerFields.contains(.ifNoneMatch)
    guard !own.matchesAny, own.isWellFormed, selected != nil || !hasOwnCondition else { return self }
    let tag = selected?.response.headerFields.first(.eTag).flatMap { EntityTag.isAsked(with: $0) ? $0 : nil }
    var request = self
    if tag != nil || !hasTags {
      request.add([tag].compactMap { $0 } + (hasTags ? [] : others.compactMap { $0.askable }), own)
    }
    // Where the caller's own tags decide alone, the origin looks at no date (RFC 9110 §13.1.3).
    guard let selected, tag != nil || !hasTags else { return request }
    return request.askingByDate(about: selected, orByNone: tag != nil)
  }

  /// Whether the caller has just what is stored, and asks about nothing else: there is no tag to add.
  func asksOnly(about metadata: StoredMetadata) -> Bool {
    guard let own = headerFields.single(.ifNoneMatch), let tag = metadata.response.headerFields.first(.eTag) else { return false }
    return own.hasSameValue(as: tag) && EntityTag.isListed(tag)
  }

  /// - Parameter mustGo: whether a date of the caller's goes where the stored answer has none.
  private func askingByDate(about selected: StoredMetadata, orByNone mustGo: Bool = true) -> HTTPRequest {
    var request = self
    if let modified = selected.response.headerFields.first(.lastModified), !modified.value.isEmpty {
      request.headerFields.replace(.ifModifiedSince, with: modified.renamed(.ifModifiedSince))
    } else if mustGo {
      request.headerFields[.ifModifiedSince] = nil
    }
    return request
  }

  /// Adds tags to `If-None-Match`: a tag that is none by the grammar only where it stays alone.
  private mutating func add(_ tags: [HTTPField], _ own: EntityTagList) {
    // The caller's own tag is stored, or nobody else's is asked about: as a rule there is little to do.
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
        // Others behind it would become one with it.
        if !EntityTag.isListed(field) { break }
        continue
      }
      guard EntityTag.isListed(field), count < Self.mostTags, text.count + bytes.count + 2 <= Self.longestQuestion else {
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

  /// The request, asking for the bytes behind a stored part, unless the answer has changed: then for all of it (RFC 9110
  /// §13.1.5).
  func asking(forRestOf metadata: StoredMetadata) -> HTTPRequest {
    guard headerFields.hasRoom(for: 2), let part = StoredPart(metadata), let tag = metadata.response.headerFields.first(.eTag)
    else { return self }
    var request = self
    request.headerFields.append(HTTPField(name: .range, value: "bytes=\(part.range.bytes.upperBound)-"))
    request.headerFields.append(tag.renamed(.ifRange))
    return request
  }

  /// Whether the conditions in this request, which it has in place of `original`'s, ask about `metadata`.
  func asks(about metadata: StoredMetadata, apartFrom original: HTTPRequest) -> Bool {
    let stored = metadata.response.headerFields
    if headerFields.contains(.ifNoneMatch) {
      guard let tag = stored.first(.eTag), EntityTag.isAsked(with: tag) else { return false }
      // What is no tag by the grammar was asked with alone.
      if let line = headerFields.single(.ifNoneMatch), line.hasSameValue(as: tag) { return true }
      return EntityTag(tag).map { EntityTagList(.ifNoneMatch, of: headerFields).names($0) } ?? false
    }
    guard let date = headerFields.first(.ifModifiedSince) else { return false }
    return stored.first(.lastModified)?.hasSameValue(as: date) ?? false
  }
}

extension StoredMetadata {
  /// The tag's line, where the answer may be asked about beside others.
  fileprivate var askable: HTTPField? {
    response.headerFields.first(.eTag).flatMap { EntityTag.isListed($0) ? $0 : nil }
  }
}
