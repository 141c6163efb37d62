internal import CacheCore
internal import HTTPTypes

extension ETagValidator {
  /// A 304 to a condition that the plan added (RFC 9111 §4.3.3, §4.3.4). One that confirms nothing that is stored, or that came unasked, leads to one
  /// unconditional fetch.
  func notModified(_ exchange: Exchange, sent: HTTPRequest, fallback: Int?, stored: [StoredMetadata]) -> ValidationVerdict {
    let asked = [fallback, selected(by: exchange.request, from: stored)].compactMap { $0 } + Array(stored.indices)
    let confirmed = asked.first { index in
      stored.indices.contains(index) && matches(stored[index], exchange.request) && sent.asks(about: stored[index])
    }
    guard let confirmed, confirms(exchange.response.headerFields, stored[confirmed].response.headerFields, sent) else {
      return .refetch(exchange.request)
    }
    return .freshen(confirmed, freshened(stored[confirmed], by: exchange), .none)
  }

  /// Whether a 304 speaks of the stored answer: by its tag, else by `Last-Modified` where only that was asked about.
  ///
  /// The tags are compared weakly, as the origin itself compares what `If-None-Match` names (RFC 9110 §13.1.2). A strong comparison would fetch every
  /// compressed file twice: origins mark the tag of the compressed 200 as weak, and not that of the 304, which has no bytes to compress.
  private func confirms(_ notModified: HTTPFields, _ stored: HTTPFields, _ sent: HTTPRequest) -> Bool {
    guard stored.hasRoom(for: notModified.count) else { return false }
    if let tag = EntityTag.asked(of: notModified) {
      return EntityTag.asked(of: stored).map(tag.weaklyMatches) ?? false
    }
    // Asked by a tag, the origin has not looked at the date (RFC 9110 §13.1.3).
    if sent.headerFields.contains(.ifNoneMatch) { return true }
    guard let modified = notModified.first(.lastModified) else { return true }
    return modified.bytes == stored.first(.lastModified)?.bytes
  }

  /// The stored answer with the fields of the 304 and new times; body, length and revision stay.
  private func freshened(_ metadata: StoredMetadata, by exchange: Exchange) -> StoredMetadata {
    // Nothing of a 304 that forbids storing may be kept: it confirms the body once, and the next use asks again.
    guard !CacheControl(exchange.response.headerFields).noStore, !CacheControl(request: exchange.request).noStore else {
      return metadata
    }
    var fresh = metadata
    fresh.response.headerFields = metadata.response.headerFields.updated(by: exchange.response.headerFields)
    fresh.request = storedRequest(exchange.request, selectedBy: fresh.response)
    (fresh.requestTime, fresh.responseTime) = (exchange.requestTime, exchange.responseTime)
    fresh.facts = facts(of: fresh.response, requestTime: exchange.requestTime, responseTime: exchange.responseTime)
    if StatusRule(fresh.response.status.code) == .whileFresh { fresh.expiration = .at(fresh.facts.freshUntil) }
    return fresh
  }
}
