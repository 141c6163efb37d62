import CacheCore
import CacheTesting
import Foundation
import HTTPTypes

/// A store with one flaw that the contract must find.
final class FlawedStore: CacheStore {
  enum Flaw: String, CaseIterable {
    case changesBytes, ignoresRevisions, showsUncommitted, keepsWhatIsRemoved, listsOtherResources, losesLength, listsUnasked,
      forgetsOneOfMany, countsRemoved, leavesOneOfMany, leavesOneFresh, evictsTheNewest
  }

  let id = ComponentID.unique(FlawedStore.self)
  private let sound = VolatileStore()
  private let flaw: Flaw
  /// The usage when all entries were removed.
  private let removed = Lock<StoreUsage?>(nil)

  init(_ flaw: Flaw) { self.flaw = flaw }

  func variants(of resource: String) async throws(CacheError) -> [StoredEntry] {
    guard flaw == .listsOtherResources else { return try await sound.variants(of: resource) }
    var all: [StoredEntry] = []
    for key in sound.keys { if let entry = try await sound.entry(for: key) { all.append(entry) } }
    return all
  }

  func entry(for key: CacheKey, range: Range<Int64>?) async throws(CacheError) -> StoredEntry? {
    guard var entry = try await sound.entry(for: key, range: range) else { return nil }
    switch flaw {
    case .changesBytes:
      var bytes = try await entry.body.collect()
      if !bytes.isEmpty { bytes[bytes.startIndex] ^= 1 }
      entry.body = ResourceBody(bytes)
    case .losesLength: entry.metadata.bodyLength = nil
    case .ignoresRevisions, .showsUncommitted, .keepsWhatIsRemoved, .listsOtherResources, .listsUnasked,
      .forgetsOneOfMany, .countsRemoved, .leavesOneOfMany, .leavesOneFresh, .evictsTheNewest:
      break
    }
    return entry
  }

  func values(for keys: [CacheKey]) async throws(CacheError) -> [CacheKey: StoredEntry] {
    try await sound.values(for: flaw == .forgetsOneOfMany ? Array(keys.dropFirst(4)) : keys)
  }

  func makeWriter(for key: CacheKey, metadata: StoredMetadata) async throws(CacheError) -> any EntryWriter {
    let writer = try await sound.makeWriter(for: key, metadata: metadata)
    switch flaw {
    case .showsUncommitted: return HastyWriter(writer, sound, key, metadata)
    case .evictsTheNewest:
      return CollectingWriter(metadata) { [sound] metadata, body throws(CacheError) in
        try await sound.store(body, for: key, metadata: metadata)
        if sound.keys.count > 30 { try await sound.remove(key, ifRevision: nil) }
      }
    case .changesBytes, .ignoresRevisions, .keepsWhatIsRemoved, .listsOtherResources, .losesLength, .listsUnasked,
      .forgetsOneOfMany, .countsRemoved, .leavesOneOfMany, .leavesOneFresh:
      return writer
    }
  }

  func updateMetadata(of key: CacheKey, to metadata: StoredMetadata, ifRevision revision: Revision) async throws(CacheError)
    -> Bool
  {
    guard flaw == .ignoresRevisions, let stored = try await sound.entry(for: key) else {
      return try await sound.updateMetadata(of: key, to: metadata, ifRevision: revision)
    }
    return try await sound.updateMetadata(of: key, to: metadata, ifRevision: stored.metadata.revision)
  }

  func remove(_ key: CacheKey, ifRevision revision: Revision?) async throws(CacheError) {
    guard flaw != .keepsWhatIsRemoved else { return }
    try await sound.remove(key, ifRevision: flaw == .ignoresRevisions ? nil : revision)
  }

  func remove(_ keys: [CacheKey]) async throws(CacheError) {
    guard flaw != .keepsWhatIsRemoved else { return }
    try await sound.remove(flaw == .leavesOneOfMany ? Array(keys.dropFirst(4)) : keys)
  }

  func markStale(_ keys: [CacheKey], at now: Timestamp) async throws(CacheError) {
    try await sound.markStale(flaw == .leavesOneFresh ? Array(keys.dropFirst(1)) : keys, at: now)
  }

  func removeAll() async throws(CacheError) {
    let usage = try await sound.usage()
    removed.withLock { $0 = usage }
    try await sound.removeAll()
  }

  func usage() async throws(CacheError) -> StoreUsage? {
    if flaw == .countsRemoved, let removed = removed.withLock({ $0 }) { return removed }
    return try await sound.usage()
  }

  func entries(
    where isWanted: @escaping @Sendable (CacheKey, StoredMetadata) -> Bool
  ) async throws(CacheError) -> [ListedEntry] {
    guard flaw != .listsUnasked else { return try await sound.entries { _, _ in true } }
    return try await sound.entries(where: isWanted)
  }
}

/// A writer that makes every chunk visible immediately.
private final class HastyWriter: EntryWriter {
  private let sound: any EntryWriter
  private let store: VolatileStore
  private let key: CacheKey
  private let metadata: StoredMetadata
  private let written = Lock(Data())

  init(_ sound: any EntryWriter, _ store: VolatileStore, _ key: CacheKey, _ metadata: StoredMetadata) {
    (self.sound, self.store, self.key, self.metadata) = (sound, store, key, metadata)
  }

  func write(_ chunk: Data) async throws(CacheError) {
    try await sound.write(chunk)
    let all = written.withLock { written in
      written.append(chunk)
      return written
    }
    try await store.store(all, for: key, metadata: metadata)
  }

  func commit(trailers: HTTPFields?) async throws(CacheError) -> StoredMetadata { try await sound.commit(trailers: trailers) }
  func abort() { sound.abort() }
}
