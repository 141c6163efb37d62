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

/// The servers' part of writing one entry. The location of its chunks is the identifier of the body.
struct RedisEntryStorage: SpoolStorage {
  static let chunkSize = BodyChunks.size

  private let key: CacheKey
  private let tag: HashTag
  private let engine: RedisEngine
  /// The key and the token of the lease, or `nil` without one.
  private let lease: (key: [UInt8], token: UInt64)?

  init(_ key: CacheKey, _ engine: RedisEngine, lease: (any RequestLease)? = nil) {
    (self.key, self.engine) = (key, engine)
    // A lease of another resource may be on another server.
    self.lease = lease.flatMap { lease in
      lease.resource == key.resource ? (engine.names.lease(lease.resource, lease.selection), lease.token) : nil
    }
    tag = HashTag(key.resource)
  }

  func requireAllowedSize(_ length: Int64) throws(CacheError) {
    let limit = engine.configuration.entrySizeLimit
    guard length <= limit else { throw CacheError(.entryTooLarge, reason: "the body is larger than \(limit) bytes") }
  }

  /// Every body has an identifier of its own, so that two writers never share a key.
  private static func newID() -> String { Hexadecimal.text(Revision.random().low) }

  func append(_ bytes: Data, at offset: Int64, to location: String?) async throws(CacheError) -> String {
    let id = location ?? Self.newID()
    let chunks = BodyChunks.framed(bytes, from: offset / Int64(BodyChunks.size), id)
    _ = try await engine.run(
      .append, keys: [engine.names.body(tag, id)],
      [.milliseconds(RedisEngine.writeTimeout)] + chunks.flatMap { [.number($0.number), .data($0.value)] }, for: tag)
    return id
  }

  func commit(_ metadata: StoredMetadata, tail: Data, at offset: Int64, in location: String?) async throws(CacheError) {
    let length = offset + Int64(tail.count)
    let isChunked = location != nil || tail.count > BodyChunks.size
    // The chunks precede the commit, because a cluster that moves the slot runs no script with a key that does not exist yet.
    let chunked = isChunked && !tail.isEmpty ? try await append(tail, at: offset, to: location) : location
    let id = chunked ?? Self.newID()
    let now = engine.now
    let value = try EntryRecord.value(
      key, metadata, body: isChunked ? nil : tail, length: length, bodyID: id, storedAt: now)
    let lifetime = engine.end(of: metadata) - now
    try await engine.index(metadata, tag, for: lifetime)
    let entries = engine.names.entries(tag, isTransform: !key.transform.isEmpty)
    let keys = [entries] + (isChunked ? [engine.names.body(tag, id)] : [])
    let reply = try await engine.run(
      .commit, keys: keys,
      [
        .bytes(KeyNames.field(key)), .data(value), .number(isChunked ? BodyChunks.count(of: length) : 0),
        .milliseconds(lifetime), .bytes(engine.names.bodies(tag)),
        .milliseconds(engine.configuration.replacedBodyRetention),
      ] + (lease.map { [.text("\($0.token)"), .bytes($0.key)] } ?? []), for: tag)
    guard reply.integer != -1 else {
      throw CacheError(.superseded, reason: "the lease of the response has expired, and another process has been granted it")
    }
    guard reply.integer == 1 else {
      throw CacheError(.damagedEntry, reason: "the Redis server has removed a part of the body before the commit")
    }
    engine.count { $0.writes += 1 }
  }

  func discard(_ id: String) {
    // If this fails, the chunks expire.
    Task { [engine, tag] in _ = try? await engine.send([RedisCommand("UNLINK", .bytes(engine.names.body(tag, id)))], for: tag) }
  }

  func note(_ error: CacheError) { engine.count { $0.failedWrites += 1 } }
}
#endif
