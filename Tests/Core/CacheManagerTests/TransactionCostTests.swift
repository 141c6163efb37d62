import CacheCore
import CacheManager
import CacheTesting
import ETagValidation
import Foundation
import HTTPTypes
import MemoryStore
import Testing

@Suite("The cost of a revalidated load")
struct TransactionCostTests {
  /// The layers that have the stale response when the load begins.
  enum StoredLayers: CaseIterable, Sendable { case disk, memoryAndDisk }

  /// The form of the load.
  enum Way: CaseIterable, Sendable { case load, callback, events, file, prefetchToDisk }

  @Test(
    "a revalidation looks up, plans and judges once, and writes each layer once", arguments: StoredLayers.allCases, Way.allCases)
  func revalidation(_ layers: StoredLayers, _ way: Way) async throws {
    let calls = CallCounter()
    let fixture = try ManagerFixture { configuration in
      guard let memory = configuration.memory, let store = configuration.store else { return }
      configuration.memory = CountingMemory(memory, calls)
      configuration.store = CountingStore(store, calls)
      configuration.validator = CountingValidator(calls)
      // The load waits for the durable store, so that the store's calls are counted.
      configuration.storeWriteTimeout = nil
    }
    fixture.network.respond(
      to: fixture.url, with: .ok("body", etag: "\"1\"", cacheControl: "max-age=60"),
      .notModified(etag: "\"1\""))
    _ = try await fixture.manager.load(fixture.url)
    if layers == .disk { fixture.restart() }
    fixture.clock.advance(by: .seconds(100))
    calls.reset()

    try await send(fixture, way)

    try fixture.network.verify()
    #expect(fixture.network.conditional == 1)
    #expect(calls["plan"] == 1)
    #expect(calls["judge"] == 1)
    // Only memory is read if it has the response that the load needs.
    let needsDisk = layers == .disk || way == .prefetchToDisk
    #expect(calls["lookup on disk"] == (needsDisk ? 1 : 0))
    #expect(calls["body from disk"] == (layers == .disk && way != .prefetchToDisk ? 1 : 0))
    #expect(calls["metadata to disk"] == 1)
    #expect(calls["entry to disk"] == 0)
    #expect(calls["index to memory"] == 1)
    // The bodies of files, and of prefetches to disk, are not stored in memory.
    #expect(calls["body to memory"] == (way == .file || way == .prefetchToDisk ? 0 : 1))
  }

  @Test("a revalidation of a value without a stored original writes the value's metadata once")
  func value() async throws {
    let calls = CallCounter()
    let fixture = try ManagerFixture { configuration in
      guard let store = configuration.store else { return }
      configuration.store = CountingStore(store, calls)
      configuration.validator = CountingValidator(calls)
      configuration.storagePolicy = .variants
      configuration.storeWriteTimeout = nil
    }
    let text = TextTransformFixture()
    fixture.network.respond(
      to: fixture.url, with: .ok("a body", etag: "\"1\"", cacheControl: "max-age=60"), .notModified(etag: "\"1\""))
    _ = try await fixture.manager.load(fixture.url, as: text.short())
    fixture.restart()
    fixture.clock.advance(by: .seconds(100))
    calls.reset()

    let value = try await fixture.manager.load(fixture.url, as: text.short())

    #expect(value.source == .revalidated && value.valueOrigin == .disk)
    #expect(calls["plan"] == 1 && calls["judge"] == 1)
    #expect(calls["metadata to disk"] == 1)
    #expect(text.decoded.value == 1)
  }

  @Test("a revalidation is reported once, from memory and from disk", arguments: StoredLayers.allCases)
  func events(_ layers: StoredLayers) async throws {
    let fixture = try ManagerFixture()
    fixture.network.respond(
      to: fixture.url, with: .ok("body", etag: "\"1\"", cacheControl: "max-age=60"), .notModified(etag: "\"1\""))
    _ = try await fixture.manager.load(fixture.url)
    if layers == .disk { fixture.restart() }
    fixture.clock.advance(by: .seconds(100))
    let before = fixture.observer.events.count

    #expect(try await fixture.manager.load(fixture.url).source == .revalidated)

    let told = fixture.observer.events.dropFirst(before)
    #expect(told.filter { if case .revalidated = $0 { true } else { false } }.count == 1)
    // The body was already in memory, or is stored there now.
    #expect(told.filter { if case .stored = $0 { true } else { false } }.count == (layers == .disk ? 1 : 0))
  }

  private func send(_ fixture: ManagerFixture, _ way: Way) async throws {
    switch way {
    case .load: #expect(try await fixture.manager.load(fixture.url).source == .revalidated)
    case .callback:
      let result = await withCheckedContinuation { continuation in
        fixture.manager.load(fixture.url) { continuation.resume(returning: $0) }
      }
      #expect(try result.get().source == .revalidated)
    case .events:
      var source: ResourceSource?
      for try await event in fixture.manager.events(for: fixture.url) {
        if case .final(let resource) = event { source = resource.source }
      }
      #expect(source == .revalidated)
    case .file:
      let file = FileManager.default.temporaryDirectory.appending(path: "etagere-\(UUID()).txt")
      defer { try? FileManager.default.removeItem(at: file) }
      #expect(try await fixture.manager.load(fixture.url, to: file).source == .revalidated)
      #expect(try String(contentsOf: file, encoding: .utf8) == "body")
    case .prefetchToDisk:
      let report = await fixture.manager.prefetch([fixture.url], into: .disk)
      #expect(report.loaded == 1)
    }
  }
}

/// A counter of calls by name.
private final class CallCounter: Sendable {
  private let counts = Lock<[String: Int]>([:])

  func count(_ name: String) { counts.withLock { $0[name, default: 0] += 1 } }

  func reset() { counts.withLock { $0 = [:] } }

  subscript(_ name: String) -> Int { counts.withLock { $0[name] ?? 0 } }
}

private struct CountingValidator: ResponseValidator {
  let id = ComponentID.unique(CountingValidator.self)
  private let base = ETagValidator()
  private let calls: CallCounter

  init(_ calls: CallCounter) { self.calls = calls }

  func plan(_ request: HTTPRequest, policy: LoadPolicy, stored: [StoredMetadata], now: Timestamp) -> ValidationPlan {
    calls.count("plan")
    return base.plan(request, policy: policy, stored: stored, now: now)
  }

  func judge(
    _ result: Result<HTTPResponse, CacheError>, to request: HTTPRequest, sent: HTTPRequest, fallback: Int?,
    stored: [StoredMetadata], requestTime: Timestamp, now: Timestamp, revision: Revision
  ) -> ValidationVerdict {
    calls.count("judge")
    return base.judge(
      result, to: request, sent: sent, fallback: fallback, stored: stored, requestTime: requestTime, now: now,
      revision: revision)
  }
}

private struct CountingMemory: MemoryStoring {
  let id: ComponentID
  private let base: any MemoryStoring
  private let calls: CallCounter

  init(_ base: any MemoryStoring, _ calls: CallCounter) { (id, self.base, self.calls) = (base.id, base, calls) }

  func entry(for key: CacheKey) -> MemoryEntry? { base.entry(for: key) }

  func insert(_ entry: MemoryEntry, for key: CacheKey) -> Bool {
    calls.count("body to memory")
    return base.insert(entry, for: key)
  }

  func update(_ key: CacheKey, _ change: (MemoryEntry?) -> MemoryUpdate) -> Bool {
    calls.count(key.transform.isEmpty ? "body to memory" : "index to memory")
    return base.update(key, change)
  }

  func remove(_ key: CacheKey, ifRevision revision: Revision?) { base.remove(key, ifRevision: revision) }

  func removeAll() { base.removeAll() }
}

private struct CountingStore: CacheStore {
  let id: ComponentID
  private let base: any CacheStore
  private let calls: CallCounter

  init(_ base: any CacheStore, _ calls: CallCounter) { (id, self.base, self.calls) = (base.id, base, calls) }

  func variants(of resource: String) async throws(CacheError) -> [StoredEntry] {
    calls.count("lookup on disk")
    return try await base.variants(of: resource)
  }

  func transforms(of resource: String) async throws(CacheError) -> [ListedEntry] { try await base.transforms(of: resource) }

  func entry(for key: CacheKey, range: Range<Int64>?) async throws(CacheError) -> StoredEntry? {
    calls.count("body from disk")
    return try await base.entry(for: key, range: range)
  }

  func makeWriter(for key: CacheKey, metadata: StoredMetadata) async throws(CacheError) -> any EntryWriter {
    calls.count("entry to disk")
    return try await base.makeWriter(for: key, metadata: metadata)
  }

  func updateMetadata(
    of key: CacheKey, to metadata: StoredMetadata, ifRevision revision: Revision
  ) async throws(CacheError) -> Bool {
    calls.count("metadata to disk")
    return try await base.updateMetadata(of: key, to: metadata, ifRevision: revision)
  }

  func remove(_ key: CacheKey, ifRevision revision: Revision?) async throws(CacheError) {
    try await base.remove(key, ifRevision: revision)
  }

  func removeAll() async throws(CacheError) { try await base.removeAll() }
}
