package import CacheCore
package import CacheTesting
internal import HTTPTypes

#if canImport(FoundationEssentials)
package import FoundationEssentials
#else
package import Foundation
#endif

/// An entry of the golden files, which every later version must find in the folder, the database or the server.
package struct GoldenEntry: Sendable, CustomStringConvertible {
  /// A change of the metadata after the entry was stored.
  package enum Change: Sendable {
    /// The update after a 304.
    case update(StoredMetadata)
    /// A soft purge.
    case markStale(Timestamp)
  }

  package let description: String
  package let key: CacheKey
  package let body: Data
  /// The metadata when the entry was stored.
  package let stored: StoredMetadata
  package var changes: [Change] = []
  /// Whether the transfer broke off, so that the entry is the part of the body that had arrived.
  package var isBroken = false

  /// The metadata that a reader finds.
  package var metadata: StoredMetadata {
    var metadata = changes.reduce(stored) { metadata, change in
      switch change {
      case .update(let updated): updated
      case .markStale(let time): metadata.markedStale(at: time)
      }
    }
    metadata.bodyLength = Int64(body.count)
    return metadata
  }
}

/// The golden files, in `Tests/Support/Golden`.
package enum GoldenFiles {
  /// Whether the files of a new version are to be written. `Scripts/golden` sets the variable.
  package static let isRequested = ProcessInfo.processInfo.environment["ETAGERE_GOLDEN"] != nil

  /// Returns the path of a folder, such as `disk-1`.
  package static func path(_ name: String) -> String {
    URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent().appending(path: "Golden/\(name)")
      .path(percentEncoded: false)
  }
}

// MARK: Writing

extension GoldenEntry {
  /// Stores entries in their order. Then it uses them in the opposite order, a minute apart, so that the last one is the least
  /// recently used.
  package static func write(_ entries: [GoldenEntry], to store: any CacheStore, _ clock: ManualClock) async throws {
    for entry in entries { try await entry.write(to: store) }
    for entry in entries.reversed() {
      clock.advance(by: .seconds(60))
      guard try await store.entry(for: entry.key) != nil else { throw CacheError(.other, reason: "no entry: \(entry)") }
    }
  }

  /// Returns the time at which ``write(_:to:_:)`` has used an entry of a list.
  package static func lastUse(ofEntryAt index: Int, in entries: [GoldenEntry]) -> Timestamp {
    start + .seconds(60 * (entries.count - index))
  }

  private func write(to store: any CacheStore) async throws {
    var metadata = stored
    metadata.trailers = nil
    if isBroken { metadata.response.status = .ok }
    let writer = try await store.makeWriter(for: key, metadata: metadata)
    // The size of the parts is not that of a store's blocks.
    for start in stride(from: 0, to: body.count, by: 50_000) { try await writer.write(body.dropFirst(start).prefix(50_000)) }
    if isBroken {
      guard try await writer.commitPart(as: stored) != nil else { throw CacheError(.other, reason: "no part: \(self)") }
    } else {
      _ = try await writer.commit(trailers: stored.trailers)
    }
    for change in changes {
      switch change {
      case .update(let updated):
        guard try await store.updateMetadata(of: key, to: updated, ifRevision: stored.revision) else {
          throw CacheError(.other, reason: "no entry to update: \(self)")
        }
      case .markStale(let time): try await store.markStale([key], at: time)
      }
    }
  }
}

// MARK: Reading

extension GoldenEntry {
  /// Compares entries with all entries of a store, by each kind of lookup.
  ///
  /// - Returns: The differences, each as a sentence.
  package static func differences(_ entries: [GoldenEntry], in store: any CacheStore) async throws -> [String] {
    var found: [String] = []
    for entry in entries { found += try await entry.differences(in: store) }
    let listed = try await store.entries()
    if Set(listed.map(\.key)) != Set(entries.map(\.key)) { found.append("the list has \(listed.map(\.key))") }
    for entry in listed where entries.first(where: { $0.key == entry.key })?.metadata != entry.metadata {
      found.append("the list has other metadata of \(entry.key)")
    }
    for tag in ["news", "sport", "weather"] {
      let expected = entries.filter { CacheTags($0.metadata.response.headerFields).contains(tag) }.map(\.key)
      if try await store.keys(tagged: tag) != Set(expected) { found.append("other entries have the tag \(tag)") }
    }
    if try await store.data(for: name) != entries.first(where: { $0.key.resource == ResourceID.make(name: name) })?.body {
      found.append("the bytes of \(name) differ")
    }
    return found
  }

  private func differences(in store: any CacheStore) async throws -> [String] {
    var found: [String] = []
    func check(_ isSame: Bool, _ lookup: String) { if !isSame { found.append("\(lookup): \(self)") } }
    let entry = try await store.entry(for: key)
    check(entry?.key == key && entry?.metadata == metadata, "other metadata")
    check(try await entry?.body.collect() == body, "another body")
    let range = body.count / 3..<body.count - body.count / 3
    let part = try await store.entry(for: key, range: Int64(range.lowerBound)..<Int64(range.upperBound))
    check(try await part?.body.collect() == body[range], "other bytes of a range")
    let lists = [
      try await store.variants(of: key.resource).filter { _ in key.transform.isEmpty }.map { ($0.key, $0.metadata) },
      try await store.transforms(of: key.resource).filter { _ in !key.transform.isEmpty }.map { ($0.key, $0.metadata) },
      try await store.entries(of: key.resource).map { ($0.key, $0.metadata) },
    ]
    let isListed = lists.map { list in list.contains { $0.0 == key && $0.1 == metadata } }
    check(isListed == [key.transform.isEmpty, !key.transform.isEmpty, true], "not listed with its resource")
    return found
  }
}

// MARK: Changing

extension GoldenEntry {
  /// Updates each entry, replaces it and removes it.
  ///
  /// - Returns: The differences from the expected results, each as a sentence.
  package static func differencesAfterChanges(_ entries: [GoldenEntry], in store: any CacheStore) async throws -> [String] {
    var found: [String] = []
    for entry in entries {
      var metadata = entry.metadata
      metadata.response.headerFields[.server] = "updated"
      let isUpdated = try await store.updateMetadata(of: entry.key, to: metadata, ifRevision: metadata.revision)
      let updated = try await store.entry(for: entry.key)
      let body = try await updated?.body.collect()
      if !isUpdated || updated?.metadata != metadata || body != entry.body { found.append("not updated: \(entry)") }
      var replacement = metadata
      (replacement.revision, replacement.responseTime, replacement.bodyLength) = (.random(), end, nil)
      try await store.store(Data("new".utf8), for: entry.key, metadata: replacement)
      let new = try await store.entry(for: entry.key)?.body.collect()
      if new != Data("new".utf8) { found.append("not replaced: \(entry)") }
      try await store.remove(entry.key, ifRevision: replacement.revision)
      if try await store.entry(for: entry.key) != nil { found.append("not removed: \(entry)") }
    }
    return found
  }

  /// Marks all entries stale, and then removes some by a tag, by a key and by a name, and at last all of them.
  ///
  /// - Returns: The differences from the expected results, each as a sentence.
  package static func differencesAfterPurges(_ entries: [GoldenEntry], in store: any CacheStore) async throws -> [String] {
    var found: [String] = []
    try await store.markStale(entries.map(\.key), at: end)
    for entry in entries {
      let metadata = try await store.entry(for: entry.key)?.metadata
      if metadata != entry.metadata.markedStale(at: end) { found.append("not marked stale: \(entry)") }
    }
    let tagged = try await store.keys(tagged: "news")
    if tagged.count != 1 { found.append("\(tagged.count) entries with a tag") }
    try await store.remove(Array(tagged))
    try await store.remove(entries[0].key, ifRevision: entries[0].metadata.revision)
    try await store.removeData(for: name)
    let removed = tagged.union([entries[0].key, CacheKey(resource: ResourceID.make(name: name))])
    let left = try await Set(store.entries().map(\.key))
    if left != Set(entries.map(\.key)).subtracting(removed) { found.append("left by the purges: \(left)") }
    try await store.removeAll()
    if try await !store.entries().isEmpty { found.append("left by the removal of all entries") }
    return found
  }
}
