import Etagere
import Foundation

/// A ``CacheStore`` over a dictionary. A store over a database has the same shape.
actor DictionaryStore: CacheStore {
  struct Stored {
    var metadata: StoredMetadata
    var body: Data
  }

  // Two instances never have the same entries. A store over a database names the database here, so that loads through its
  // instances are shared.
  nonisolated let id = ComponentID.unique(DictionaryStore.self)
  private let clock: any CacheClock
  private var entries: [CacheKey: Stored] = [:]

  init(clock: any CacheClock = SystemClock()) { self.clock = clock }

  var count: Int { entries.count }

  func variants(of resource: String) async throws(CacheError) -> [StoredEntry] {
    entries.filter { $0.key.resource == resource && $0.key.transform.isEmpty && isAlive($0.value) }
      .map { StoredEntry(key: $0.key, metadata: $0.value.metadata, body: ResourceBody($0.value.body)) }
  }

  func entry(for key: CacheKey, range: Range<Int64>?) async throws(CacheError) -> StoredEntry? {
    guard let stored = entries[key], isAlive(stored) else { return nil }
    let whole = 0..<Int64(stored.body.count)
    let part = (range ?? whole).clamped(to: whole)
    let bytes = stored.body.dropFirst(Int(part.lowerBound)).prefix(part.count)
    return StoredEntry(key: key, metadata: stored.metadata, body: ResourceBody(Data(bytes)))
  }

  func makeWriter(for key: CacheKey, metadata: StoredMetadata) async throws(CacheError) -> any EntryWriter {
    CollectingWriter(metadata) { metadata, body in await self.replace(key, with: Stored(metadata: metadata, body: body)) }
  }

  private func replace(_ key: CacheKey, with stored: Stored) { entries[key] = stored }

  func updateMetadata(of key: CacheKey, to metadata: StoredMetadata, ifRevision: Revision) async throws(CacheError) -> Bool {
    guard entries[key]?.metadata.revision == ifRevision else { return false }
    entries[key]?.metadata = metadata
    return true
  }

  func remove(_ key: CacheKey, ifRevision: Revision?) async throws(CacheError) {
    if let ifRevision, entries[key]?.metadata.revision != ifRevision { return }
    entries[key] = nil
  }

  func removeAll() async throws(CacheError) { entries = [:] }

  func entries(
    where isWanted: @escaping @Sendable (CacheKey, StoredMetadata) -> Bool
  ) async throws(CacheError) -> [ListedEntry] {
    entries.filter { isAlive($0.value) && isWanted($0.key, $0.value.metadata) }
      .map { ListedEntry(key: $0.key, metadata: $0.value.metadata) }
  }

  /// The time to live counts from the response, or from the 304 that last confirmed it.
  private func isAlive(_ stored: Stored) -> Bool {
    clock.now < (stored.metadata.expiration ?? .never).deadline(from: stored.metadata.responseTime)
  }
}
