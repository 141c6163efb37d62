#if Redis
internal import CacheCore

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

extension RedisEngine {
  /// A record with its body, if that is in the same key.
  private struct Found {
    var record: Data?
    var body: Data?
  }

  func variants(of resource: String) async throws(CacheError) -> [StoredEntry] {
    let tag = HashTag(resource)
    let key = names.entries(tag, isTransform: false)
    let replies = try await send([RedisCommand("HGETALL", .bytes(key))], for: tag)
    let found = Self.pair(replies[0].array ?? [])
    var entries: [StoredEntry] = []
    for found in found {
      guard let entry = try await entry(found, tag, range: nil) else { continue }
      // Another resource can have the same tag.
      if entry.key.resource == resource, entry.key.transform.isEmpty { entries.append(entry) }
    }
    count { if entries.isEmpty { $0.misses += 1 } else { $0.hits += 1 } }
    return entries
  }

  /// Joins the fields and values of a hash: records and bodies of one entry have the same field after the first byte.
  private static func pair(_ values: [RESPValue]) -> [Found] {
    // Nearly every resource has one entry.
    if values.count == 4, let first = values[0].bytes, let second = values[2].bytes, first.dropFirst() == second.dropFirst() {
      return first.first == KeyNames.recordMark
        ? [Found(record: values[1].bytes, body: values[3].bytes)] : [Found(record: values[3].bytes, body: values[1].bytes)]
    }
    var found: [Data: Found] = [:]
    for index in stride(from: 0, to: values.count - 1, by: 2) {
      guard let field = values[index].bytes else { continue }
      let (digest, value) = (Data(field.dropFirst()), values[index + 1].bytes)
      switch field.first {
      case KeyNames.recordMark: found[digest, default: Found()].record = value
      case KeyNames.bodyMark: found[digest, default: Found()].body = value
      default: continue
      }
    }
    return Array(found.values)
  }

  func entry(for key: CacheKey, range: Range<Int64>?) async throws(CacheError) -> StoredEntry? {
    let tag = HashTag(key.resource)
    let fields = KeyNames.fields(key)
    var command: [RedisCommand.Argument] = ["HMGET", .bytes(names.entries(tag, isTransform: !key.transform.isEmpty))]
    command.append(.bytes(fields.record))
    // An empty range asks for the metadata only.
    if range?.isEmpty != true { command.append(.bytes(fields.body)) }
    let values = try await send([RedisCommand(command)], for: tag)[0].array ?? []
    let found = Found(record: values.first?.bytes, body: values.count > 1 ? values[1].bytes : nil)
    var entry = try await entry(found, tag, range: range)
    if entry?.key != key { entry = nil }
    count { if entry == nil { $0.misses += 1 } else { $0.hits += 1 } }
    return entry
  }

  /// Returns the entry, or `nil` if it is missing, expired or damaged. A damaged entry is removed.
  private func entry(_ found: Found, _ tag: HashTag, range: Range<Int64>?) async throws(CacheError) -> StoredEntry? {
    guard let bytes = found.record else { return nil }
    switch EntryRecord.decode(bytes) {
    // It belongs to another version of the schema or to another program.
    case .foreign: return nil
    case .damaged:
      // Without its key, the entry cannot be removed. It expires, or the next response replaces it.
      count { $0.damaged += 1 }
      return nil
    case .entry(let record):
      guard !isExpired(record.metadata, at: now) else { return nil }
      let wanted = (range ?? 0..<record.length).clamped(to: 0..<record.length)
      guard let body = try await body(of: record, found.body, tag, wanted) else {
        await discard(record, bytes, tag)
        return nil
      }
      return StoredEntry(key: record.key, metadata: record.metadata, body: body)
    }
  }

  /// Returns `nil` if the body is damaged or missing.
  private func body(
    of record: EntryRecord, _ data: Data?, _ tag: HashTag, _ range: Range<Int64>
  ) async throws(CacheError) -> ResourceBody? {
    guard record.isChunked else {
      guard !range.isEmpty || record.length == 0 else { return ResourceBody(Data()) }
      guard let data, data.count == record.length, EntryRecord.checksum(data) == record.bodyChecksum else { return nil }
      let isWhole = range.upperBound - range.lowerBound == record.length
      return ResourceBody(isWhole ? data : data.subdata(in: Int(range.lowerBound)..<Int(range.upperBound)))
    }
    let count = try await send([RedisCommand("HLEN", .bytes(names.body(tag, record.bodyID)))], for: tag)
    guard count[0].integer == BodyChunks.count(of: record.length) else { return nil }
    return ResourceBody(
      length: range.upperBound - range.lowerBound, source: RedisBody(record, range, tag, self))
  }

  /// Removes an entry that is damaged or whose body was evicted, unless it has been replaced.
  func discard(_ record: EntryRecord, _ bytes: Data, _ tag: HashTag) async {
    count { $0.damaged += 1 }
    let fields = KeyNames.fields(record.key)
    _ = try? await run(
      .remove, keys: [names.entries(tag, isTransform: !record.key.transform.isEmpty)],
      [
        .bytes(fields.record), .bytes(fields.body), .data(bytes), "1", .bytes(names.bodies(tag)),
        .milliseconds(configuration.replacedBodyRetention),
      ], for: tag)
  }

  // MARK: Lists

  func transforms(of resource: String) async throws(CacheError) -> [ListedEntry] {
    let tag = HashTag(resource)
    return try await list(tag, [names.entries(tag, isTransform: true)]) { key, _ in key.resource == resource }
  }

  /// Returns the wanted entries in some keys of one hash tag.
  func list(
    _ tag: HashTag, _ keys: [[UInt8]], where isWanted: (CacheKey, StoredMetadata) -> Bool
  ) async throws(CacheError) -> [ListedEntry] {
    let reply: RESPValue
    do throws(CacheError) {
      reply = try await run(.list, keys: keys, [], for: tag)
    } catch {
      // The key belongs to another program.
      if error.code == .unsupported { return [] }
      throw error
    }
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
