public import CacheCore
public import HTTPTypes

extension ETagValidator {
  /// Returns the reply from a stored response (RFC 9111 §4): its stored fields with the current `Age`, subject to the caller's
  /// own conditions.
  ///
  /// The conditions are evaluated in the order of RFC 9110 §13.2.2. If the response is not modified, the reply is a 304 with the
  /// fields of §15.4.5. A single range gets a 206 if it is within the body, and a 416 otherwise. Several ranges get the whole
  /// response, as §14.2 permits, and so does a range of a body of unknown length.
  public func reply(to request: HTTPRequest, from metadata: StoredMetadata, now: Timestamp) -> StoredReply {
    if request.hasConditionsOrRange, request.method == .get || request.method == .head {
      let conditions = Preconditions(request: request)
      if conditions.isNotModified(metadata) { return notModified(metadata, now) }
      if let range = request.singleRange, let reply = part(range, conditions, metadata, now) { return reply }
    }
    return StoredReply(head: head(of: metadata, now), content: request.method == .head ? .none : .whole)
  }

  private func head(of metadata: StoredMetadata, _ now: Timestamp) -> HTTPResponse {
    var head = metadata.response
    // Copied once, with capacity for `Age` and the cache's own status field.
    head.headerFields.reserveCapacity(head.headerFields.count + 2)
    head.headerFields.setAge(metadata.freshness.age(at: now))
    return head
  }

  private func notModified(_ metadata: StoredMetadata, _ now: Timestamp) -> StoredReply {
    var head = HTTPResponse(status: .notModified)
    let stored = metadata.response.headerFields
    let hasTag = stored.contains(.eTag)
    // Fields that describe bytes do not belong in a response without a body. `Last-Modified` is for responses without a tag
    // (RFC 9110 §15.4.5).
    head.headerFields = stored.removing { name in
      name == "last-modified" ? hasTag : HTTPFields.describesBytes(name) && name != "etag"
    }
    head.headerFields.setAge(metadata.freshness.age(at: now))
    return StoredReply(head: head, content: .none)
  }

  /// Returns the 206 or 416 for a range, or `nil` if the range is ignored.
  private func part(
    _ requested: ByteRange, _ conditions: Preconditions, _ metadata: StoredMetadata, _ now: Timestamp
  ) -> StoredReply? {
    guard conditions.allowsRange(metadata) else { return nil }
    if let part = StoredPart(metadata) {
      guard let bytes = part.covered(requested) else { return nil }
      let from = part.bytes.lowerBound
      let range = ContentRange((bytes.lowerBound + from)..<(bytes.upperBound + from), of: part.completeLength)
      return StoredReply(head: head(of: range, metadata, now), content: .range(bytes))
    }
    guard metadata.response.status == .ok, let length = metadata.bodyLength else { return nil }
    guard let bytes = requested.resolved(in: length) else {
      return StoredReply(
        head: HTTPResponse(status: .rangeNotSatisfiable, headerFields: [.contentRange: "bytes */\(length)"]), content: .none)
    }
    return StoredReply(head: head(of: ContentRange(bytes, of: length), metadata, now), content: .range(bytes))
  }

  private func head(of range: ContentRange, _ metadata: StoredMetadata, _ now: Timestamp) -> HTTPResponse {
    var head = HTTPResponse(status: .partialContent)
    // Digests of the content apply only to the whole content.
    head.headerFields = metadata.response.headerFields.removing(HTTPFields.digestsContent)
    head.headerFields.set(.contentLength, "\(range.length)")
    head.headerFields.set(.contentRange, range.fieldValue)
    head.headerFields.setAge(metadata.freshness.age(at: now))
    return head
  }
}
