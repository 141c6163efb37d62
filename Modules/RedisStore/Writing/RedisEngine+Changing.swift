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
    let now = now
    let lifetime = lifetime(of: metadata, at: now)
    try await index(metadata, tag, until: now + lifetime)
    let fields = KeyNames.fields(key)
    let reply = try await run(
      .update, keys: [names.entries(tag, isTransform: !key.transform.isEmpty)],
      [
        .bytes(fields.record), .bytes(fields.body), .bytes(EntryRecord.bytes(of: revision)),
        .bytes(try EntryRecord.rest(key, metadata)), .milliseconds(lifetime), .bytes(names.bodies(tag)),
        .milliseconds(configuration.replacedBodyRetention),
      ], for: tag)
    return reply.integer == 1
  }

  func remove(_ key: CacheKey, ifRevision revision: Revision?) async throws(CacheError) {
    let tag = HashTag(key.resource)
    let fields = KeyNames.fields(key)
    _ = try await run(
      .remove, keys: [names.entries(tag, isTransform: !key.transform.isEmpty)],
      [
        .bytes(fields.record), .bytes(fields.body), .bytes(revision.map(EntryRecord.bytes) ?? []),
        .number(EntryRecord.revisionPosition), .bytes(names.bodies(tag)), .milliseconds(configuration.replacedBodyRetention),
      ], for: tag)
  }
}
#endif
