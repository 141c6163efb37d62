import Etagere
import Foundation
import Synchronization

/// A storage backend of one's own: a ``CacheStore`` over a dictionary. Put a database in the dictionary's place and the shape stays the same.
final class DictionaryStore: CacheStore {
  struct Stored {
    var metadata: StoredMetadata
    var body: Data
  }

  // Two of these stores never answer alike. One over a database would name it here, so that its instances share their loads.
  let id = ComponentID.unique(DictionaryStore.self)
  private let clock: any CacheClock
  private let entries = Mutex<[CacheKey: Stored]>([:])

  init(clock: any CacheClock = SystemClock()) { self.clock = clock }

  var keys: [CacheKey] { entries.withLock { Array($0.keys) } }

  func variants(of resource: String) async throws(CacheError) -> [StoredEntry] {
    let found = entries.withLock { $0.filter { $0.key.resource == resource && $0.key.transform.isEmpty } }
    return found.filter { isAlive($0.value) }
      .map { StoredEntry(key: $0.key, metadata: $0.value.metadata, body: ResourceBody($0.value.body)) }
  }

  func entry(for key: CacheKey, range: Range<Int64>?) async throws(CacheError) -> StoredEntry? {
    guard let stored = entries.withLock({ $0[key] }), isAlive(stored) else { return nil }
    let whole = 0..<Int64(stored.body.count)
    let part = (range ?? whole).clamped(to: whole)
    let bytes = stored.body.dropFirst(Int(part.lowerBound)).prefix(part.count)
    return StoredEntry(key: key, metadata: stored.metadata, body: ResourceBody(Data(bytes)))
  }

  func makeWriter(for key: CacheKey, metadata: StoredMetadata) async throws(CacheError) -> any EntryWriter {
    CollectingWriter(metadata) { metadata, body in
      self.entries.withLock { $0[key] = Stored(metadata: metadata, body: body) }
    }
  }

  func updateMetadata(of key: CacheKey, to metadata: StoredMetadata, ifRevision: Revision) async throws(CacheError) -> Bool {
    entries.withLock { entries in
      guard entries[key]?.metadata.revision == ifRevision else { return false }
      entries[key]?.metadata = metadata
      return true
    }
  }

  func remove(_ key: CacheKey, ifRevision: Revision?) async throws(CacheError) {
    entries.withLock { entries in
      if let ifRevision, entries[key]?.metadata.revision != ifRevision { return }
      entries[key] = nil
    }
  }

  func removeAll() async throws(CacheError) { entries.withLock { $0 = [:] } }

  func entries(
    where isWanted: @escaping @Sendable (CacheKey, StoredMetadata) -> Bool
  ) async throws(CacheError) -> [ListedEntry] {
    let all = entries.withLock { $0 }
    return all.filter { isAlive($0.value) && isWanted($0.key, $0.value.metadata) }
      .map { ListedEntry(key: $0.key, metadata: $0.value.metadata) }
  }

  /// The time to live counts from the answer, or from the 304 that last confirmed it.
  private func isAlive(_ stored: Stored) -> Bool {
    clock.now < (stored.metadata.expiration ?? .never).deadline(from: stored.metadata.responseTime)
  }
}
