#if Redis
internal import CacheCore

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

extension RedisEngine {
  func updateMetadata(
    of key: CacheKey, to metadata: StoredMetadata, ifRevision revision: Revision
  ) async throws(CacheError) -> Bool {
    let tag = HashTag(key.resource)
    var metadata = metadata
    metadata.revision = revision
    let lifetime = end(of: metadata) - now
    try await index(metadata, tag, for: lifetime)
    let description = try EntryRecord.description(key, metadata)
    let reply = try await run(
      .update, keys: [names.entries(tag, isTransform: !key.transform.isEmpty)],
      [
        .bytes(KeyNames.field(key)), .bytes(EntryRecord.bytes(of: revision)), .bytes(description),
        .bytes(EntryRecord.digits(of: description.count)), .milliseconds(lifetime), .bytes(names.bodies(tag)),
        .milliseconds(configuration.replacedBodyRetention),
      ], for: tag)
    return reply.integer == 1
  }

  func remove(_ key: CacheKey, ifRevision revision: Revision?) async throws(CacheError) {
    try await remove(key, HashTag(key.resource), ifRevision: revision, bodyID: "")
  }

  /// Removes an entry if it has the given revision and body. With `nil` or an empty identifier, any one matches.
  func remove(_ key: CacheKey, _ tag: HashTag, ifRevision revision: Revision?, bodyID: String) async throws(CacheError) {
    _ = try await run(
      .remove, keys: [names.entries(tag, isTransform: !key.transform.isEmpty)],
      [
        .bytes(KeyNames.field(key)), .bytes(revision.map(EntryRecord.bytes) ?? []), .text(bodyID), .bytes(names.bodies(tag)),
        .milliseconds(configuration.replacedBodyRetention),
      ], for: tag)
  }
}
#endif
