internal import CacheCore
internal import HTTPTypes

extension HTTPRequest {
  /// Whether the caller asks for a part, or under a condition, of its own (RFC 9110 §13.1, §14.2).
  var hasConditionsOrRange: Bool { headerFields.contains { Self.conditions.contains($0.name) } }

  private static let conditions: Set<HTTPField.Name> = [
    .ifMatch, .ifNoneMatch, .ifModifiedSince, .ifUnmodifiedSince, .ifRange, .range,
  ]

  /// Whether it can't change anything at the origin (RFC 9110 §9.2.1). A method that is not known may.
  var isSafe: Bool { [.get, .head, .options, .trace].contains(method) }

  /// The request, asking whether `metadata` are still current (RFC 9111 §4.3.1): the origin's own strings, byte for byte.
  ///
  /// Unchanged when there is nothing to ask with, and when the request forbids storing: then a 304 could not be kept either (§5.2.1.5).
  func asking(about metadata: StoredMetadata, _ directives: CacheControl) -> HTTPRequest {
    guard !directives.noStore, headerFields.hasRoom(for: 2) else { return self }
    let fields = metadata.response.headerFields
    var request = self
    if let tag = fields.first(.eTag), EntityTag.isAsked(with: tag) { request.headerFields.append(tag.renamed(.ifNoneMatch)) }
    if let modified = fields.first(.lastModified), !modified.value.isEmpty {
      request.headerFields.append(modified.renamed(.ifModifiedSince))
    }
    return request
  }

  /// The request, so that the caches on the way don't answer it either (RFC 9111 §5.2.1.4), unless the caller speaks to them already.
  func pastAllCaches() -> HTTPRequest {
    guard !headerFields.contains(.cacheControl), headerFields.hasRoom(for: 1) else { return self }
    var request = self
    request.headerFields[.cacheControl] = "no-cache"
    return request
  }

  /// Whether the conditions in this request, which the caller did not set, are those that ask about `metadata`.
  func asks(about metadata: StoredMetadata) -> Bool {
    let stored = metadata.response.headerFields
    if let tag = headerFields.first(.ifNoneMatch) { return stored.first(.eTag)?.bytes == tag.bytes }
    guard let date = headerFields.first(.ifModifiedSince) else { return false }
    return stored.first(.lastModified)?.bytes == date.bytes
  }
}
