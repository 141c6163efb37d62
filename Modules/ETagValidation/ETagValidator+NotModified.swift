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
    guard let confirmed, confirms(exchange.response.headerFields, stored[confirmed].response.headerFields) else {
      return .refetch
    }
    return .freshen(confirmed, freshened(stored[confirmed], by: exchange))
  }

  /// Whether the validators in a 304, where it has any, are those of the stored answer: tags weakly, `Last-Modified` only without a tag. A 304 without
  /// validators confirms what was asked about.
  ///
  /// RFC 9111 §4.3.4 wants a strong tag to match strongly. But nginx labels a compressed 200 `W/"a"` and the 304 that confirms it `"a"`: taken at its
  /// word, everything it compresses would be sent again after each 304. The condition was compared weakly (RFC 9110 §13.1.2), and the stored tag
  /// stays weak, so nothing comes to be labelled that was not.
  private func confirms(_ notModified: HTTPFields, _ stored: HTTPFields) -> Bool {
    guard stored.hasRoom(for: notModified.count) else { return false }
    if let tag = EntityTag.of(notModified) {
      guard let storedTag = EntityTag.of(stored) else { return false }
      return tag.weaklyMatches(storedTag)
    }
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
