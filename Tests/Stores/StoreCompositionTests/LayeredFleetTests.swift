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

@Suite("Layered store: a layer that other processes change", .timeLimit(.minutes(30)))
struct LayeredFleetTests {
  private let key = CacheKey(resource: "https://example.com/a")
  private let upper = VolatileStore()
  private let lower = VolatileStore()

  /// Metadata of a response that is later than the one of ``metadata()``.
  private func later(revision: Revision = .random()) -> StoredMetadata {
    var later = metadata(revision: revision, at: Timestamp(seconds: 1_767_225_601))
    later.freshness.freshUntil = Timestamp(seconds: 1_767_225_700)
    return later
  }

  @Test("a later response in a lower layer replaces the older one above")
  func replaced() async throws {
    let store = try LayeredStore([upper, lower])
    try await upper.store(Data("old".utf8), for: key, metadata: metadata())
    let new = later()
    try await lower.store(Data("new".utf8), for: key, metadata: new)
    #expect(try await store.variants(of: key.resource).first?.metadata.revision != new.revision)
    #expect(try await store.latestVariants(of: key.resource).map(\.metadata.revision) == [new.revision])
    #expect(try await store.text(key) == "new")
    await store.flush()
    #expect(try await upper.text(key) == "new")
  }

  @Test("a later update of the same response reaches the layer above without its body")
  func updated() async throws {
    let store = try LayeredStore([upper, lower])
    let old = metadata()
    try await upper.store(Data("upper".utf8), for: key, metadata: old)
    let new = later(revision: old.revision)
    try await lower.store(Data("lower".utf8), for: key, metadata: new)
    #expect(try await store.latestVariants(of: key.resource).map(\.metadata.freshness) == [new.freshness])
    await store.flush()
    #expect(try await upper.entry(for: key)?.metadata.freshness == new.freshness)
    #expect(try await upper.text(key) == "upper")
  }

  @Test("a later response in the upper layer stays")
  func upperIsLater() async throws {
    let store = try LayeredStore([upper, lower])
    let new = later()
    try await upper.store(Data("new".utf8), for: key, metadata: new)
    try await lower.store(Data("old".utf8), for: key, metadata: metadata())
    #expect(try await store.latestVariants(of: key.resource).map(\.metadata.revision) == [new.revision])
    await store.flush()
    #expect(try await store.text(key) == "new")
    #expect(try await ReadOnlyStore(store).latestVariants(of: key.resource).map(\.metadata.revision) == [new.revision])
  }

  @Test("a copy that began before the unshared part is purged is not completed")
  func overtakenCopy() async throws {
    let held = HeldStore()
    let store = try LayeredStore([held, FencedStore(lower)])
    try await lower.store(Data("purged".utf8), for: key, metadata: metadata())
    #expect(try await store.variants(of: key.resource).count == 1)
    await held.gate.arrived()
    try await lower.remove(key, ifRevision: nil)
    #expect(await store.unsharedPart() != nil)
    held.gate.open()
    await store.flush()
    #expect(held.inner.keys.isEmpty)
  }

  @Test("no layer stores a response whose commit one layer refuses as superseded")
  func superseded() async throws {
    let store = try LayeredStore([upper, FencedStore(lower)])
    let writer = try await store.makeWriter(for: key, metadata: metadata(), lease: TestLease(resource: key.resource))
    try await writer.write(Data("late".utf8))
    let error = await #expect(throws: CacheError.self) { try await writer.commit(trailers: nil) }
    #expect(error?.code == .superseded)
    #expect(try await store.text(key) == nil)
    #expect(upper.keys.isEmpty && lower.keys.isEmpty)
    #expect(store.counters.layers.map(\.failures) == [0, 0])
    // Without a lease, the store accepts the response.
    try await store.store(Data("a".utf8), for: key, metadata: metadata())
    #expect(try await upper.text(key) == "a")
  }

  @Test("a purge reaches a response in a lower layer that lookups do not find", arguments: [true, false])
  func purgedBelow(hard: Bool) async throws {
    let store = try LayeredStore([upper, lower])
    try await upper.store(Data("upper".utf8), for: key, metadata: later())
    var below = later()
    below.response.headerFields[try #require(HTTPField.Name("Cache-Tag"))] = "news"
    try await lower.store(Data("lower".utf8), for: key, metadata: below)
    let keys = try await store.keys(tagged: "news")
    #expect(keys == [key])
    let now = below.responseTime + .seconds(1)
    if hard { try await store.remove(Array(keys)) } else { try await store.markStale(Array(keys), at: now) }
    #expect(try await lower.entry(for: key)?.metadata.freshness.isFresh(at: now) == (hard ? nil : false))
    #expect(try await upper.entry(for: key)?.metadata.freshness.isFresh(at: now) == (hard ? nil : false))
  }

  @Test("a copy that began before its entry is removed with many others is not completed")
  func overtakenBatchCopy() async throws {
    let held = HeldStore()
    let store = try LayeredStore([held, lower])
    try await lower.store(Data("purged".utf8), for: key, metadata: metadata())
    #expect(try await store.variants(of: key.resource).count == 1)
    await held.gate.arrived()
    try await store.remove((0..<300).map { CacheKey(resource: "https://example.com/\($0)") } + [key])
    held.gate.open()
    await store.flush()
    #expect(held.inner.keys.isEmpty && lower.keys.isEmpty)
  }

  @Test(
    "a layer that cannot remove or mark entries hides them, and the next purge finds and changes them",
    arguments: [true, false], [true, false])
  func failingLayer(hard: Bool, isShared: Bool) async throws {
    let failing = VolatileStore()
    let remote = RemoteStore(failing, isShared: isShared)
    let store = try LayeredStore([upper, remote])
    let keys = (0..<3).map { CacheKey(resource: "https://example.com/\($0)") }
    for key in keys { try await store.store(Data("a".utf8), for: key, metadata: metadata()) }
    remote.failure.withLock { $0 = .storeUnavailable }
    let error = await #expect(throws: CacheError.self) {
      if hard { try await store.remove(keys) } else { try await store.markStale(keys, at: metadata().responseTime) }
    }
    #expect(error?.code == .storeUnavailable)
    #expect(failing.keys.count == 3)
    #expect(upper.keys.count == (hard ? 0 : 3))
    if !hard { try await upper.removeAll() }
    remote.failure.withLock { $0 = nil }
    for key in keys { #expect(try await store.entry(for: key) == nil) }
    let listed = try await store.entries().map(\.key)
    #expect(Set(listed) == Set(keys))
    try await store.remove(listed)
    #expect(failing.keys.isEmpty)
  }

  @Test("a cancelled purge throws, and neither hides nor removes entries", arguments: [true, false])
  func cancelled(hard: Bool) async throws {
    let remote = RemoteStore(lower)
    let store = try LayeredStore([remote])
    try await store.store(Data("a".utf8), for: key, metadata: metadata())
    remote.failure.withLock { $0 = .cancelled }
    let error = await #expect(throws: CacheError.self) {
      if hard { try await store.remove([key]) } else { try await store.markStale([key], at: metadata().responseTime) }
    }
    #expect(error?.isCancellation == true)
    remote.failure.withLock { $0 = nil }
    #expect(try await store.text(key) == "a")
  }

  @Test("a removal of entries does not wait for the commit of another resource, nor end the copy of one")
  func independent() async throws {
    let held = HeldStore()
    let store = try LayeredStore([held, lower])
    let copied = CacheKey(resource: "https://example.com/copied")
    try await lower.store(Data("copied".utf8), for: copied, metadata: metadata())
    _ = try await store.variants(of: copied.resource)
    await held.gate.arrived()
    let other = CacheKey(resource: "https://example.com/other")
    let commit = Task { try await store.store(Data("other".utf8), for: other, metadata: metadata()) }
    await held.gate.arrived(2)
    try await store.remove([key, CacheKey(resource: "https://example.com/b")])
    held.gate.open()
    _ = try await commit.value
    await store.flush()
    #expect(try await held.inner.text(copied) == "copied")
    #expect(try await held.inner.text(other) == "other")
  }

  @Test("removals of overlapping entries, commits and removals of all entries do not wait for each other forever")
  func overlapping() async throws {
    let store = try LayeredStore([upper, lower])
    let keys = (0..<40).map { CacheKey(resource: "https://example.com/\($0)") }
    try await withThrowingTaskGroup(of: Void.self) { group in
      for number in 0..<200 {
        group.addTask {
          switch number % 5 {
          case 0: try await store.remove(keys.reversed())
          case 1: try await store.remove(Array(keys[(number % 20)...]))
          case 2: try await store.markStale(keys.shuffled(), at: metadata().responseTime)
          case 3: try await store.store(Data("a".utf8), for: keys[number % 40], metadata: metadata())
          default: try await store.removeAll()
          }
        }
      }
      try await group.waitForAll()
    }
    await store.flush()
    try await store.remove(keys)
    #expect(upper.keys.isEmpty && lower.keys.isEmpty)
  }

  @Test("a soft purge hides the fresh entry of a read-only layer below another response")
  func readOnlyBelow() async throws {
    let store = try LayeredStore([upper, ReadOnlyStore(lower)])
    try await upper.store(Data("upper".utf8), for: key, metadata: later())
    try await lower.store(Data("lower".utf8), for: key, metadata: later())
    let now = later().responseTime + .seconds(1)
    try await store.markStale([key], at: now)
    #expect(try await store.entry(for: key)?.metadata.freshness.isFresh(at: now) == false)
    try await upper.removeAll()
    #expect(try await store.entry(for: key) == nil)
  }

  @Test("a removed entry of a read-only layer is not found by its tag")
  func removedFromReadOnly() async throws {
    let store = try LayeredStore([upper, ReadOnlyStore(lower)])
    var tagged = later()
    tagged.response.headerFields[try #require(HTTPField.Name("Cache-Tag"))] = "news"
    let other = CacheKey(resource: "https://example.com/other")
    for key in [key, other] { try await lower.store(Data("lower".utf8), for: key, metadata: tagged) }
    try await store.remove([key])
    #expect(try await store.keys(tagged: "news") == [other])
    #expect(try await store.entries().map(\.key) == [other])
    let filtered = Lock<[CacheKey]>([])
    _ = try await store.entries { key, _ in
      filtered.withLock { $0.append(key) }
      return false
    }
    #expect(filtered.withLock { $0 } == [other])
  }

  @Test("a list has an entry of a shared layer that this process hides, and a removal removes it")
  func hiddenHere() async throws {
    let remote = RemoteStore(lower)
    let store = try LayeredStore([upper, remote])
    remote.failure.withLock { $0 = .storeUnavailable }
    try await store.store(Data("a".utf8), for: key, metadata: metadata())
    remote.failure.withLock { $0 = nil }
    try await upper.removeAll()
    // Another process stores a response.
    var other = later()
    other.response.headerFields[try #require(HTTPField.Name("Cache-Tag"))] = "news"
    try await lower.store(Data("b".utf8), for: key, metadata: other)
    #expect(try await store.entry(for: key) == nil)
    #expect(try await store.entries().map(\.key) == [key])
    #expect(try await store.keys(tagged: "news") == [key])
    #expect(try await store.entries(of: key.resource).map(\.key) == [key])
    try await store.remove([key])
    #expect(lower.keys.isEmpty)
    try await lower.store(Data("c".utf8), for: key, metadata: later())
    #expect(try await store.text(key) == "c")
  }

  @Test("every list fails if a layer fails, so that a purge does not skip the layer")
  func failingList() async throws {
    let remote = RemoteStore(lower)
    let store = try LayeredStore([upper, remote])
    try await store.store(Data("a".utf8), for: key, metadata: metadata())
    remote.failure.withLock { $0 = .storeUnavailable }
    await #expect(throws: CacheError.self) { try await store.entries(of: key.resource) }
    await #expect(throws: CacheError.self) { try await store.entries() }
    await #expect(throws: CacheError.self) { try await store.keys(tagged: "news") }
    #expect(try await store.text(key) == "a")
  }

  @Test("a shared layer that is read-only for a while makes removals fail, and another read-only layer does not")
  func readOnlyServer() async throws {
    let remote = RemoteStore(lower)
    let store = try LayeredStore([upper, ReadOnlyStore(VolatileStore()), remote])
    try await store.store(Data("a".utf8), for: key, metadata: metadata())
    remote.failure.withLock { $0 = .readOnly }
    for change: @Sendable () async throws -> Void in [
      { try await store.remove([key]) }, { try await store.remove(key, ifRevision: nil) }, { try await store.removeAll() },
      { try await store.markStale([key], at: metadata().responseTime) },
    ] {
      let error = await #expect(throws: CacheError.self) { try await change() }
      #expect(error?.code == .readOnly)
    }
    remote.failure.withLock { $0 = nil }
    try await store.removeAll()
    #expect(lower.keys.isEmpty)
  }

  @Test("the shared part has the layers that other machines use")
  func shared() async throws {
    let shared = FencedStore(lower)
    let store = try LayeredStore([upper, shared])
    try await store.store(Data("a".utf8), for: key, metadata: metadata())
    let part = try #require(await store.sharedPart())
    try await part.remove(key, ifRevision: nil)
    #expect(upper.keys == [key])
    #expect(lower.keys.isEmpty)
    #expect(try await LayeredStore([shared]).sharedPart() != nil)
    #expect(try await LayeredStore([upper]).sharedPart() == nil)
    #expect(await upper.sharedPart() == nil)
    #expect(await shared.sharedPart()?.id == shared.id)
  }

  @Test("with writing back, the shared part has all layers, because entries wait for their copy into the shared ones")
  func sharedPartWithWritingBack() async throws {
    let store = try LayeredStore([upper, FencedStore(lower)], configuration: .init(writing: .back))
    #expect(await store.sharedPart()?.id == store.id)
    #expect(try await LayeredStore([upper, lower], configuration: .init(writing: .back)).sharedPart() == nil)
  }

  @Test("the unshared part has the layers that other machines do not change")
  func unshared() async throws {
    let shared = FencedStore(lower)
    let store = try LayeredStore([upper, shared])
    try await store.store(Data("a".utf8), for: key, metadata: metadata())
    let part = try #require(await store.unsharedPart())
    try await part.remove(key, ifRevision: nil)
    #expect(upper.keys.isEmpty)
    #expect(lower.keys == [key])
    #expect(try await LayeredStore([shared]).unsharedPart() == nil)
    #expect(await ReadOnlyStore(upper).unsharedPart() != nil)
  }
}

/// A shared store that refuses each commit under a lease, as if a later lease had been granted.
private final class FencedStore: CacheStore {
  let id = ComponentID.unique(FencedStore.self)
  private let inner: VolatileStore

  init(_ inner: VolatileStore) { self.inner = inner }

  func variants(of resource: String) async throws(CacheError) -> [StoredEntry] { try await inner.variants(of: resource) }

  func entry(for key: CacheKey, range: Range<Int64>?) async throws(CacheError) -> StoredEntry? {
    try await inner.entry(for: key, range: range)
  }

  func makeWriter(for key: CacheKey, metadata: StoredMetadata) async throws(CacheError) -> any EntryWriter {
    try await inner.makeWriter(for: key, metadata: metadata)
  }

  func makeWriter(
    for key: CacheKey, metadata: StoredMetadata, lease: any RequestLease
  ) async throws(CacheError) -> any EntryWriter {
    CollectingWriter(metadata) { _, _ throws(CacheError) in throw CacheError(.superseded, reason: "superseded") }
  }

  func updateMetadata(of key: CacheKey, to metadata: StoredMetadata, ifRevision: Revision) async throws(CacheError) -> Bool {
    try await inner.updateMetadata(of: key, to: metadata, ifRevision: ifRevision)
  }

  func remove(_ key: CacheKey, ifRevision: Revision?) async throws(CacheError) {
    try await inner.remove(key, ifRevision: ifRevision)
  }

  func removeAll() async throws(CacheError) { try await inner.removeAll() }

  func unsharedPart() async -> (any CacheStore)? { nil }
}

private final class TestLease: RequestLease {
  let resource: String
  let selection = ""
  let token: UInt64 = 1

  init(resource: String) { self.resource = resource }

  func endAsStored() {}
  func endAsNotShared(for duration: Duration) {}
  func abandon() {}
}

/// A store, shared or not, whose calls can fail.
private final class RemoteStore: CacheStore {
  let id = ComponentID.unique(RemoteStore.self)
  /// The code of the errors that all calls throw.
  let failure = Lock<CacheError.Code?>(nil)
  private let inner: VolatileStore

  private let isShared: Bool

  init(_ inner: VolatileStore, isShared: Bool = true) { (self.inner, self.isShared) = (inner, isShared) }

  private func requireNoFailure() throws(CacheError) {
    if let code = failure.withLock({ $0 }) {
      throw code == .cancelled ? .cancelled : CacheError(code, reason: "the server is away")
    }
  }

  func variants(of resource: String) async throws(CacheError) -> [StoredEntry] {
    try requireNoFailure()
    return try await inner.variants(of: resource)
  }

  func entry(for key: CacheKey, range: Range<Int64>?) async throws(CacheError) -> StoredEntry? {
    try requireNoFailure()
    return try await inner.entry(for: key, range: range)
  }

  func entries(
    where isWanted: @escaping @Sendable (CacheKey, StoredMetadata) -> Bool
  ) async throws(CacheError) -> [ListedEntry] {
    try requireNoFailure()
    return try await inner.entries(where: isWanted)
  }

  func makeWriter(for key: CacheKey, metadata: StoredMetadata) async throws(CacheError) -> any EntryWriter {
    try requireNoFailure()
    return try await inner.makeWriter(for: key, metadata: metadata)
  }

  func updateMetadata(of key: CacheKey, to metadata: StoredMetadata, ifRevision: Revision) async throws(CacheError) -> Bool {
    try requireNoFailure()
    return try await inner.updateMetadata(of: key, to: metadata, ifRevision: ifRevision)
  }

  func remove(_ key: CacheKey, ifRevision: Revision?) async throws(CacheError) {
    try requireNoFailure()
    try await inner.remove(key, ifRevision: ifRevision)
  }

  func removeAll() async throws(CacheError) {
    try requireNoFailure()
    try await inner.removeAll()
  }

  func unsharedPart() async -> (any CacheStore)? { isShared ? nil : self }
}
