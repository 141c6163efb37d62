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
    let call = removal(of: key, tag, ifRevision: revision, bodyID: bodyID)
    _ = try await run(.remove, keys: call.keys, call.arguments, for: tag)
  }

  /// Removes several entries, many of them with one request.
  ///
  /// - Throws: The first error, after every key was tried.
  func remove(_ keys: [CacheKey]) async throws(CacheError) {
    let calls = keys.map { removal(of: $0, HashTag($0.resource), ifRevision: nil, bodyID: "") }
    _ = try await run(.remove, calls) { replies throws(CacheError) in
      for case .error(let message) in replies { throw Self.error(message) }
    }
  }

  private func removal(of key: CacheKey, _ tag: HashTag, ifRevision revision: Revision?, bodyID: String) -> ScriptCall {
    ScriptCall(
      tag: tag, keys: [names.entries(tag, isTransform: !key.transform.isEmpty)],
      arguments: [
        .bytes(KeyNames.field(key)), .bytes(revision.map(EntryRecord.bytes) ?? []), .text(bodyID), .bytes(names.bodies(tag)),
        .milliseconds(configuration.replacedBodyRetention),
      ])
  }
}
#endif
