#if Redis
internal import CacheCore

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

extension RedisEngine {
  func variants(of resource: String) async throws(CacheError) -> [StoredEntry] {
    let tag = HashTag(resource)
    let command = RedisCommand(
      "HVALS", .bytes(names.entries(tag, isTransform: false)), replyLimit: RedisCommand.listReply)
    let replies = try await send([command], for: tag)
    var entries: [StoredEntry] = []
    for value in replies[0].array ?? [] {
      guard let bytes = value.bytes else { continue }
      guard let entry = try await entry(bytes, tag, range: nil) else { continue }
      // Another resource can have the same tag.
      if entry.key.resource == resource, entry.key.transform.isEmpty { entries.append(entry) }
    }
    count { if entries.isEmpty { $0.misses += 1 } else { $0.hits += 1 } }
    return entries
  }

  func entry(for key: CacheKey, range: Range<Int64>?) async throws(CacheError) -> StoredEntry? {
    let tag = HashTag(key.resource)
    let (name, field) = (names.entries(tag, isTransform: !key.transform.isEmpty), KeyNames.field(key))
    let value: RESPValue
    let isWhole = range?.isEmpty != true
    if !isWhole {
      // The caller needs the metadata only.
      value = try await run(.peek, keys: [name], [.bytes(field)], for: tag)
    } else {
      let command = RedisCommand("HGET", .bytes(name), .bytes(field), replyLimit: RedisCommand.entryReply)
      value = try await send([command], for: tag)[0]
    }
    var entry: StoredEntry?
    if let bytes = value.bytes { entry = try await self.entry(bytes, tag, in: isWhole ? (name, field) : nil, range: range) }
    if entry?.key != key { entry = nil }
    count { if entry == nil { $0.misses += 1 } else { $0.hits += 1 } }
    return entry
  }

  /// Returns the entry, or `nil` if it is expired or damaged.
  ///
  /// - Parameter place: The key and the field of the value, to remove it if it is damaged. `nil` leaves it until it expires or is
  ///   replaced, because its field is not known or it was read without its body.
  private func entry(
    _ value: Data, _ tag: HashTag, in place: (name: [UInt8], field: [UInt8])? = nil, range: Range<Int64>?
  ) async throws(CacheError) -> StoredEntry? {
    switch EntryRecord.decode(value) {
    // It belongs to another version of the schema or to another program.
    case .foreign: return nil
    case .damaged:
      count { $0.damaged += 1 }
      if let place { _ = try? await run(.discard, keys: [place.name], [.bytes(place.field), .data(value)], for: tag) }
      return nil
    case .entry(let record):
      guard !isExpired(record.metadata, at: now) else { return nil }
      let wanted = (range ?? 0..<record.length).clamped(to: 0..<record.length)
      guard let body = try await body(of: record, value, tag, wanted) else {
        await discard(record, tag)
        return nil
      }
      return StoredEntry(key: record.key, metadata: record.metadata, body: body)
    }
  }

  /// Returns `nil` if the body is damaged or missing.
  private func body(
    of record: EntryRecord, _ value: Data, _ tag: HashTag, _ range: Range<Int64>
  ) async throws(CacheError) -> ResourceBody? {
    guard record.isChunked else {
      guard !range.isEmpty else { return ResourceBody(Data()) }
      guard let data = record.body(in: value) else { return nil }
      let isWhole = range.upperBound - range.lowerBound == record.length
      return ResourceBody(isWhole ? data : data.subdata(in: Int(range.lowerBound)..<Int(range.upperBound)))
    }
    let count = try await send([RedisCommand("HLEN", .bytes(names.body(tag, record.bodyID)))], for: tag)
    guard count[0].integer == BodyChunks.count(of: record.length) else { return nil }
    let source = ChunkedBody(range, trailers: record.metadata.trailers) { start throws(CacheError) in
      let part = start..<min(range.upperBound, BodyChunks.endOfRead(from: start))
      if let chunks = try await self.chunks(part, of: record, tag) { return chunks }
      self.count { $0.damaged += 1 }
      throw CacheError(.damagedEntry, reason: "the stored body is damaged, or the Redis server has removed it")
    }
    return ResourceBody(length: range.upperBound - range.lowerBound, source: source)
  }

  /// Returns the bytes of `range` in the body of an entry, or `nil` if a chunk is damaged or missing.
  private func chunks(_ range: Range<Int64>, of record: EntryRecord, _ tag: HashTag) async throws(CacheError) -> [Data]? {
    let numbers = BodyChunks.numbers(of: range)
    let command = RedisCommand(
      ["HMGET", .bytes(names.body(tag, record.bodyID))] + numbers.map { .number($0) },
      replyLimit: (numbers.count + 1) * (BodyChunks.size + 256))
    let values = try await send([command], for: tag)[0].array
    return values.flatMap { BodyChunks.bytes(range, of: record.length, record.bodyID, in: $0) }
  }

  /// Removes an entry that is damaged or whose body was evicted, unless it has been replaced.
  private func discard(_ record: EntryRecord, _ tag: HashTag) async {
    count { $0.damaged += 1 }
    _ = try? await remove(record.key, tag, ifRevision: record.metadata.revision, bodyID: record.bodyID)
  }

  // MARK: Lists

  func transforms(of resource: String) async throws(CacheError) -> [ListedEntry] {
    let tag = HashTag(resource)
    let reply = try await run(.list, keys: [names.entries(tag, isTransform: true)], [], for: tag)
    return entries(in: reply) { key, _ in key.resource == resource }
  }

  /// Returns the wanted entries in a reply to ``Script/list``.
  func entries(in reply: RESPValue, where isWanted: (CacheKey, StoredMetadata) -> Bool) -> [ListedEntry] {
    let now = now
    var listed: [ListedEntry] = []
    for value in reply.array ?? [] {
      guard let bytes = value.bytes, case .entry(let record) = EntryRecord.decode(bytes),
        !isExpired(record.metadata, at: now), isWanted(record.key, record.metadata)
      else { continue }
      listed.append(
        ListedEntry(
          key: record.key, metadata: record.metadata, size: record.length + Int64(bytes.count), storedAt: record.storedAt))
    }
    return listed
  }
}
#endif
