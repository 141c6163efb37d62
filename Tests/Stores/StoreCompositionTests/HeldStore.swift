import CacheCore
import CacheTesting
import HTTPTypes

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// A store with gates. One blocks its writers before each write and before the commit. Others, which are open at first, block
/// removals of all entries and the results of batch lookups.
final class HeldStore: CacheStore {
  let id = ComponentID.unique(HeldStore.self)
  let inner = VolatileStore()
  let gate = Gate()
  let removals = Gate(isOpen: true)
  let responses = Gate(isOpen: true)
  private let largest = Lock(0)

  /// The size in bytes of the largest chunk that was written.
  var largestChunk: Int { largest.withLock { $0 } }

  func variants(of resource: String) async throws(CacheError) -> [StoredEntry] { try await inner.variants(of: resource) }

  func entry(for key: CacheKey, range: Range<Int64>?) async throws(CacheError) -> StoredEntry? {
    try await inner.entry(for: key, range: range)
  }

  func values(for keys: [CacheKey]) async throws(CacheError) -> [CacheKey: StoredEntry] {
    let found = try await inner.values(for: keys)
    await responses.pass()
    return found
  }

  func makeWriter(for key: CacheKey, metadata: StoredMetadata) async throws(CacheError) -> any EntryWriter {
    Writer(try await inner.makeWriter(for: key, metadata: metadata), self)
  }

  func updateMetadata(of key: CacheKey, to metadata: StoredMetadata, ifRevision: Revision) async throws(CacheError) -> Bool {
    try await inner.updateMetadata(of: key, to: metadata, ifRevision: ifRevision)
  }

  func remove(_ key: CacheKey, ifRevision: Revision?) async throws(CacheError) {
    try await inner.remove(key, ifRevision: ifRevision)
  }

  func removeAll() async throws(CacheError) {
    await removals.pass()
    try await inner.removeAll()
  }

  private final class Writer: EntryWriter {
    private let inner: any EntryWriter
    private let store: HeldStore

    init(_ inner: any EntryWriter, _ store: HeldStore) { (self.inner, self.store) = (inner, store) }

    func write(_ chunk: Data) async throws(CacheError) {
      store.largest.withLock { $0 = max($0, chunk.count) }
      await store.gate.pass()
      try await inner.write(chunk)
    }

    func commit(trailers: HTTPFields?) async throws(CacheError) -> StoredMetadata {
      await store.gate.pass()
      return try await inner.commit(trailers: trailers)
    }

    func abort() { inner.abort() }
  }
}
