internal import CacheCore
internal import HTTPTypes

extension ETagValidator {
  /// Returns the updates of a HEAD's 200 to the stored responses that the GET would have selected (RFC 9111 §4.3.5). Equal
  /// validators and length update them. Otherwise they become stale.
  func headUpdates(of exchange: Exchange, stored: [StoredMetadata]) -> [Int: StoredMetadata] {
    guard !forbidsStoring(of: exchange) else { return [:] }
    var updates: [Int: StoredMetadata] = [:]
    for (index, metadata) in stored.enumerated() {
      guard !metadata.isPart, metadata.response.status == .ok, matches(metadata, exchange.request) else { continue }
      guard isSame(exchange.response.headerFields, metadata) else {
        let freshness = metadata.freshness.markedStale(at: exchange.responseTime)
        guard freshness != metadata.freshness else { continue }
        var stale = metadata
        stale.freshness = freshness
        updates[index] = stale
        continue
      }
      updates[index] = updatedMetadata(metadata, by: exchange)
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
    if let known = stored.first(.contentLength) { return known.bytes == length.bytes }
    return metadata.bodyLength.map { "\($0)" == length.value } ?? true
  }
}
