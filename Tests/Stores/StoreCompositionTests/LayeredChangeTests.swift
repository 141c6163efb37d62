import CacheCore
import CacheTesting
import HTTPTypes
import StoreComposition
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Suite("Layered store: updates and removals")
struct LayeredChangeTests {
  private let key = CacheKey(resource: "https://example.com/a")
  private let gone = CacheError(.fileSystem, reason: "the disk is gone")

  private func etag(_ store: any CacheStore) async throws -> String? {
    try await store.entry(for: key)?.metadata.response.headerFields[.eTag]
  }

  @Test("an update reaches every layer that has the entry in that revision")
  func refresh() async throws {
    let (upper, lower) = (VolatileStore(), VolatileStore())
    let store = try LayeredStore([upper, lower])
    let old = try await store.store(Data("kept".utf8), for: key, metadata: metadata())
    var new = old
    new.response.headerFields[.eTag] = "\"fresh\""

    #expect(try await store.updateMetadata(of: key, to: new, ifRevision: old.revision))
    for layer in [upper, lower] { #expect(try await etag(layer) == "\"fresh\"") }
    #expect(try await !store.updateMetadata(of: key, to: old, ifRevision: .random()))
    #expect(try await etag(store) == "\"fresh\"")
  }

  @Test("another revision below the visible one is neither updated nor removed")
  func shownDecides() async throws {
    let (upper, lower) = (VolatileStore(), VolatileStore())
    try await upper.store(Data("new".utf8), for: key, metadata: metadata())
    let old = try await lower.store(Data("old".utf8), for: key, metadata: metadata())
    let store = try LayeredStore([upper, lower])

    #expect(try await !store.updateMetadata(of: key, to: old, ifRevision: old.revision))
    try await store.remove(key, ifRevision: old.revision)
    #expect(try await store.text(key) == "new")
  }

  @Test("a layer that cannot update loses the entry if another one has updated it; if none has, the error is thrown")
  func failingRefresh() async throws {
    let (upper, lower) = (RefusingStore(), VolatileStore())
    let store = try LayeredStore([upper, lower], configuration: .init(promotionLimit: 0))
    let old = try await store.store(Data("kept".utf8), for: key, metadata: metadata())
    var new = old
    new.response.headerFields[.eTag] = "\"fresh\""

    #expect(try await store.updateMetadata(of: key, to: new, ifRevision: old.revision))
    #expect(try await etag(store) == "\"fresh\"")
    #expect(upper.inner.keys.isEmpty)

    try await store.store(Data("kept".utf8), for: key, metadata: old)
    try await lower.removeAll()
    #expect(await failure { _ = try await store.updateMetadata(of: key, to: new, ifRevision: old.revision) }?.code == .fileSystem)
  }

  @Test("a 304 for a read-only entry updates the copy above it")
  func refreshAboveReadOnly() async throws {
    let (upper, shipped) = (HeldStore(), VolatileStore())
    let old = try await shipped.store(Data("kept".utf8), for: key, metadata: metadata())
    var new = old
    new.response.headerFields[.eTag] = "\"fresh\""
    let store = try LayeredStore([upper, ReadOnlyStore(shipped)])
    #expect(try await store.variants(of: key.resource).count == 1)
    await upper.gate.arrived()

    async let isFresh = store.updateMetadata(of: key, to: new, ifRevision: old.revision)
    upper.gate.open()
    #expect(try await isFresh)
    #expect(try await etag(store) == "\"fresh\"")
    #expect(try await etag(shipped) == "\"a\"")
  }

  @Test("an entry that exists only in a read-only layer is copied up when it is marked stale", arguments: [false, true])
  func staleAboveReadOnly(isEvicted: Bool) async throws {
    let (refusing, upper, shipped) = (NullStore(), VolatileStore(), VolatileStore())
    let now = Timestamp(seconds: 1_767_225_600)
    var fresh = metadata(at: now)
    fresh.freshness.freshUntil = now + .seconds(60)
    let old = try await shipped.store(Data("kept".utf8), for: key, metadata: fresh)
    let store = try LayeredStore([refusing, upper, ReadOnlyStore(shipped)])
    var stale = old
    stale.freshness = old.freshness.markedStale(at: now)

    #expect(try await store.updateMetadata(of: key, to: stale, ifRevision: old.revision))
    if isEvicted {
      // The lower layer's entry states that it is fresh.
      try await upper.removeAll()
      #expect(try await store.entry(for: key) == nil)
    } else {
      #expect(try await store.text(key) == "kept")
      #expect(try await store.entry(for: key)?.metadata.freshness == stale.freshness)
    }
  }

  @Test("a layer that cannot update but accepts the copy keeps it")
  func copyIntoRefusing() async throws {
    let (upper, shipped) = (RefusingStore(), VolatileStore())
    let old = try await shipped.store(Data("kept".utf8), for: key, metadata: metadata())
    var new = old
    new.response.headerFields[.eTag] = "\"fresh\""
    let store = try LayeredStore([upper, ReadOnlyStore(shipped)])

    #expect(try await store.updateMetadata(of: key, to: new, ifRevision: old.revision))
    #expect(try await etag(store) == "\"fresh\"")
  }

  @Test("if no layer accepts the copy, the entry is hidden only if it would be considered too fresh", arguments: [0, 60])
  func staleWithoutCopy(lifetime: Int) async throws {
    let shipped = VolatileStore()
    let now = Timestamp(seconds: 1_767_225_600)
    var response = metadata(at: now)
    response.freshness.freshUntil = now + .seconds(lifetime)
    let old = try await shipped.store(Data("kept".utf8), for: key, metadata: response)
    let store = try LayeredStore([VolatileStore(), ReadOnlyStore(shipped)], configuration: .init(promotionLimit: 0))
    var stale = old
    stale.freshness = old.freshness.markedStale(at: now)

    #expect(try await !store.updateMetadata(of: key, to: stale, ifRevision: old.revision))
    #expect(try await store.text(key) == (lifetime == 0 ? "kept" : nil))
  }

  @Test("a removal reaches every layer and hides a read-only entry, and a later store is visible")
  func remove() async throws {
    let (upper, lower, shipped) = (VolatileStore(), VolatileStore(), VolatileStore())
    for layer in [upper, lower, shipped] { try await layer.store(Data("kept".utf8), for: key, metadata: metadata()) }
    let store = try LayeredStore([upper, lower, ReadOnlyStore(shipped)])

    try await store.remove(key, ifRevision: nil)
    #expect(upper.keys.isEmpty && lower.keys.isEmpty)
    #expect(try await store.entry(for: key) == nil)
    #expect(try await store.variants(of: key.resource).isEmpty)
    #expect(try await store.entries { _, _ in true }.isEmpty)

    try await store.store(Data("new".utf8), for: key, metadata: metadata())
    #expect(try await store.text(key) == "new")
    try await upper.removeAll()
    try await lower.removeAll()
    #expect(try await store.entry(for: key) == nil)
  }

  @Test("a removal of all entries reaches every layer, and later entries stay")
  func removeAll() async throws {
    let (upper, lower, shipped) = (VolatileStore(), VolatileStore(), VolatileStore())
    for layer in [upper, lower, shipped] { try await layer.store(Data("kept".utf8), for: key, metadata: metadata()) }
    let store = try LayeredStore([upper, lower, ReadOnlyStore(shipped)])

    try await store.removeAll()
    #expect(upper.keys.isEmpty && lower.keys.isEmpty)
    #expect(try await store.entry(for: key) == nil)
    try await store.store(Data("new".utf8), for: key, metadata: metadata())
    #expect(try await store.text(key) == "new")
  }

  @Test(
    "an entry that a layer cannot remove causes an error, is hidden, and is removed before the next write",
    arguments: [false, true])
  func failingRemoval(isAll: Bool) async throws {
    let (upper, lower) = (VolatileStore(), VolatileStore())
    let other = CacheKey(resource: "https://example.com/b")
    let store = try LayeredStore([upper, lower])
    try await store.store(Data("kept".utf8), for: key, metadata: metadata())

    upper.failure = gone
    let error = await failure { try await isAll ? store.removeAll() : store.remove(key, ifRevision: nil) }
    #expect(error?.code == .fileSystem)
    #expect(lower.keys.isEmpty)
    upper.failure = nil
    #expect(try await store.entry(for: key) == nil)

    try await store.store(Data("new".utf8), for: other, metadata: metadata())
    #expect(try await store.text(other) == "new")
    #expect(try await store.entry(for: key) == nil)
    #expect(upper.keys.contains(key) == !isAll)
  }

  @Test("an entry that is removed before it was written back stays removed")
  func removeOwed() async throws {
    let (upper, lower) = (VolatileStore(), HeldStore())
    let store = try LayeredStore([upper, lower], configuration: .init(writing: .back))
    let keys = (0..<2).map { CacheKey(resource: "https://example.com/\($0)") }
    for key in keys { try await store.store(Data("kept".utf8), for: key, metadata: metadata()) }
    await lower.gate.arrived()

    for key in keys { try await store.remove(key, ifRevision: nil) }
    lower.gate.open()
    await store.flush()
    #expect(lower.inner.keys.isEmpty)
    for key in keys { #expect(try await store.entry(for: key) == nil) }
  }
}

/// A store that can do everything except update metadata.
private final class RefusingStore: CacheStore {
  let id = ComponentID.unique(RefusingStore.self)
  let inner = VolatileStore()

  func variants(of resource: String) async throws(CacheError) -> [StoredEntry] { try await inner.variants(of: resource) }

  func entry(for key: CacheKey, range: Range<Int64>?) async throws(CacheError) -> StoredEntry? {
    try await inner.entry(for: key, range: range)
  }

  func makeWriter(for key: CacheKey, metadata: StoredMetadata) async throws(CacheError) -> any EntryWriter {
    try await inner.makeWriter(for: key, metadata: metadata)
  }

  func updateMetadata(of key: CacheKey, to metadata: StoredMetadata, ifRevision: Revision) async throws(CacheError) -> Bool {
    throw CacheError(.fileSystem, reason: "the disk is gone")
  }

  func remove(_ key: CacheKey, ifRevision: Revision?) async throws(CacheError) {
    try await inner.remove(key, ifRevision: ifRevision)
  }

  func removeAll() async throws(CacheError) { try await inner.removeAll() }
}
