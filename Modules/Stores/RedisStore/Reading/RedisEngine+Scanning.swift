#if Redis
internal import CacheCore
internal import HTTPTypes

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// Operations on all entries, or on those with a cache tag.
extension RedisEngine {
  /// The number of keys that one step of a scan looks at.
  private static let scanStep = 2_000

  /// Calls `visit` with the names of all keys of the cache on one server after another. A key can be visited twice.
  private func scan(
    _ suffix: String, _ visit: ([Data], RedisNode) async throws(CacheError) -> Void
  ) async throws(CacheError) {
    for node in try await router.primaries() {
      var cursor = "0"
      repeat {
        if Task.isCancelled { throw .cancelled }
        let reply = try await node.send([
          RedisCommand(
            "SCAN", .text(cursor), "MATCH", .text(names.pattern(suffix)), "COUNT", .number(Self.scanStep),
            replyLimit: RedisCommand.listReply)
        ])[0]
        if case .error(let message) = reply { throw Self.error(message) }
        guard let parts = reply.array, parts.count == 2, let next = parts[0].text, let keys = parts[1].array else {
          throw CacheError(.storeUnavailable, reason: "the Redis server \(node.address.endpoint) sent no list of keys")
        }
        try await visit(keys.compactMap(\.bytes), node)
        cursor = next
      } while cursor != "0"
    }
  }

  func entries(
    where isWanted: @escaping @Sendable (CacheKey, StoredMetadata) -> Bool
  ) async throws(CacheError) -> [ListedEntry] {
    var found: [CacheKey: ListedEntry] = [:]
    try await scan("[vt]") { keys, _ throws(CacheError) in
      let wanted = keys.compactMap { key in names.tag(of: key).map { ScriptCall(tag: $0, keys: [Array(key)]) } }
      for entry in try await list(wanted, where: isWanted) { found[entry.key] = entry }
    }
    return Array(found.values)
  }

  /// Returns the wanted entries in some keys, many of them with one request.
  private func list(
    _ calls: [ScriptCall], where isWanted: @escaping @Sendable (CacheKey, StoredMetadata) -> Bool
  ) async throws(CacheError) -> [ListedEntry] {
    try await run(.list, calls) { replies throws(CacheError) in
      for case .error(let message) in replies { throw Self.error(message) }
      return replies.flatMap { self.entries(in: $0, where: isWanted) }
    }.flatMap(\.self)
  }

  /// Removes all entries and the indices. Bodies remain for their readers for a while.
  func removeAll() async throws(CacheError) {
    let retention = configuration.replacedBodyRetention
    try await scan("[vtgb]*") { keys, node throws(CacheError) in
      let commands = keys.compactMap { key -> RedisCommand? in
        guard names.tag(of: key) != nil else { return nil }
        return names.isBody(key)
          ? RedisCommand("PEXPIRE", .data(key), .milliseconds(retention)) : RedisCommand("UNLINK", .data(key))
      }
      guard !commands.isEmpty else { return }
      for case .error(let message) in try await node.send(commands) { throw Self.error(message) }
    }
  }

  // MARK: Cache tags

  /// Adds a resource to the index of each of its cache tags. This precedes the commit, so that every entry is in the index.
  func index(_ metadata: StoredMetadata, _ resource: HashTag, for lifetime: Duration) async throws(CacheError) {
    let cacheTags = CacheTags(metadata.response.headerFields).names
    guard !cacheTags.isEmpty, lifetime > .zero else { return }
    let failure = await withTaskGroup(of: CacheError?.self) { group in
      for name in cacheTags {
        group.addTask {
          let (tag, key) = self.names.index(of: name)
          do throws(CacheError) {
            _ = try await self.run(.index, keys: [key], [.bytes(resource.bytes), .milliseconds(lifetime)], for: tag)
            return nil
          } catch {
            return error
          }
        }
      }
      return await group.reduce(nil) { $0 ?? $1 }
    }
    if let failure { throw failure }
  }

  func keys(tagged name: String) async throws(CacheError) -> Set<CacheKey> {
    let found = Lock<Set<CacheKey>>([])
    // The index can lead to entries that no longer have the tag.
    let note: @Sendable (CacheKey, StoredMetadata) -> Bool = { key, metadata in
      if CacheTags(metadata.response.headerFields).contains(name) { found.withLock { _ = $0.insert(key) } }
      return false
    }
    if try await keepsIndices() {
      let calls = try await resources(tagged: name).map { tag in
        ScriptCall(tag: tag, keys: [names.entries(tag, isTransform: false), names.entries(tag, isTransform: true)])
      }
      _ = try await list(calls, where: note)
    } else {
      _ = try await entries(where: note)
    }
    return found.withLock { $0 }
  }

  /// Returns the resources in the index of a cache tag, which is read in steps.
  private func resources(tagged name: String) async throws(CacheError) -> Set<HashTag> {
    let (tag, key) = names.index(of: name)
    var resources: Set<HashTag> = []
    var cursor = "0"
    repeat {
      let command = RedisCommand(
        "ZSCAN", .bytes(key), .text(cursor), "COUNT", .number(Self.scanStep), replyLimit: RedisCommand.listReply)
      let reply = try await send([command], for: tag)[0]
      guard let parts = reply.array, parts.count == 2, let next = parts[0].text, let members = parts[1].array else {
        throw CacheError(.storeUnavailable, reason: "the Redis server sent no list of the entries with a cache tag")
      }
      // Each member precedes its score.
      for index in stride(from: 0, to: members.count, by: 2) {
        if let resource = members[index].bytes.flatMap(HashTag.init) { resources.insert(resource) }
      }
      cursor = next
    } while cursor != "0"
    return resources
  }

  /// Returns whether no server evicts keys. A server that does may have evicted an index and kept the entries.
  private func keepsIndices() async throws(CacheError) -> Bool {
    for node in try await router.primaries() {
      guard let text = try await node.send([RedisCommand("INFO", "memory")])[0].text else { return false }
      let lines = text.split(whereSeparator: \.isNewline)
      guard lines.contains("maxmemory:0") || lines.contains("maxmemory_policy:noeviction") else { return false }
    }
    return true
  }
}
#endif
