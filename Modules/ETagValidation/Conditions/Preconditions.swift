internal import CacheCore
internal import HTTPTypes

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
    return
      (Self.modified(metadata) ?? fields.date(receivedAt: metadata.responseTime) ?? metadata.responseTime)
      <= since
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
