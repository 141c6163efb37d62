internal import CacheCore
internal import HTTPTypes

/// The caller's own conditions, as a cache evaluates them on an answer that it holds (RFC 9111 §4.3.2, RFC 9110 §13.2.2).
struct Preconditions {
  let request: HTTPRequest

  /// Conditions that a cache must leave to the origin (RFC 9111 §4.3.2).
  static func areOrigins(of request: HTTPRequest) -> Bool {
    request.headerFields.contains(.ifMatch) || request.headerFields.contains(.ifUnmodifiedSince)
  }

  /// Whether the caller has the stored answer already, so that a 304 is its answer. `If-None-Match`, where there is one, decides
  /// alone.
  func isNotModified(_ metadata: StoredMetadata) -> Bool {
    let fields = metadata.response.headerFields
    // Under a condition an answer that is no success would be what it is (RFC 9110 §13.2.1).
    guard (200...299).contains(metadata.response.status.code) else { return false }
    if request.headerFields.contains(.ifNoneMatch) {
      return request.asksOnly(about: metadata)
        || EntityTagList(.ifNoneMatch, of: request.headerFields).names(fields.first(.eTag).flatMap { EntityTag($0) })
    }
    guard let since = date(.ifModifiedSince, metadata) else { return false }
    return
      (Self.modified(metadata) ?? FreshnessRules.date(of: fields, receivedAt: metadata.responseTime) ?? metadata.responseTime)
      <= since
  }

  /// Whether a range may be served: there is no `If-Range`, or it names the stored bytes by a strong validator (RFC 9110
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
    return stored.first(.eTag).flatMap { EntityTag($0) }.map(tag.stronglyMatches) ?? false
  }

  /// Only a single line that can be read is a condition (RFC 9110 §13.1.3).
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

  /// `Last-Modified` where it labels bytes: a second at least before the answer was made (RFC 9110 §8.8.2.2).
  private static func strongDate(_ metadata: StoredMetadata) -> Timestamp? {
    let date = FreshnessRules.date(of: metadata.response.headerFields, receivedAt: metadata.responseTime)
    guard let modified = modified(metadata), let date, date - modified >= .seconds(1) else { return nil }
    return modified
  }
}
