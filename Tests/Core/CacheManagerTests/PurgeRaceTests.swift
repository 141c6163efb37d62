import CacheCore
import CacheManager
import CacheTesting
import DiskStore
import Foundation
import HTTPTypes
import MemoryStore
import Testing

private let tagged = HTTPFields.field("Cache-Tag", "t")

/// The way to request a response.
enum LoadMethod: String, CaseIterable, Sendable { case load, exchange, prefetch }

extension ManagerFixture {
  fileprivate func send(_ method: LoadMethod) async throws -> String {
    switch method {
    case .load: return try await manager.load(url).text
    case .exchange:
      let request = HTTPRequest(method: .get, scheme: "https", authority: "example.com", path: "/image.png")
      return String(decoding: try await manager.respond(to: request).body.collect(), as: UTF8.self)
    case .prefetch: return await manager.prefetch([url]).failed.isEmpty ? "old" : "failed"
    }
  }
}

@Suite("Purging responses that are being loaded")
struct PurgeRaceTests {
  @Test(
    "a response that was requested before a hard purge reaches its caller and is not stored",
    arguments: LoadMethod.allCases, [PurgeSelection.everything, .tag("t")])
  func hard(_ method: LoadMethod, _ selection: PurgeSelection) async throws {
    let fixture = try ManagerFixture()
    let gate = Gate()
    fixture.network.respond(
      to: fixture.url, with: .ok("old", etag: "\"1\"", cacheControl: "max-age=600", fields: tagged).bodyHeld(by: gate),
      .ok("new", etag: "\"2\"", cacheControl: "max-age=600"))
    let late = Task { try await fixture.send(method) }
    await gate.arrived()

    try await fixture.manager.purge(selection)
    gate.open()

    #expect(try await late.value == "old")
    #expect(fixture.memory.count == 0 && fixture.disk.keys.isEmpty)
    #expect(try await fixture.manager.load(fixture.url).text == "new")
  }

  /// The ways to remove the responses of a resource.
  enum Removal: CaseIterable, Sendable { case purge, removal, unsafeRequest }

  @Test("after a removal no load gets a response whose commit had begun before it", arguments: Removal.allCases)
  func removalDuringCommit(_ kind: Removal) async throws {
    let (fixture, store) = try ManagerFixture.held {
      $0.waitForStores()
      $0.memory = nil
    }
    fixture.network.respond(to: fixture.url, with: .ok("old", cacheControl: "max-age=600"))
    if kind == .unsafeRequest { fixture.network.respond(to: fixture.url, with: .ok("done", cacheControl: "no-store")) }
    fixture.network.respond(to: fixture.url, with: .ok("new", cacheControl: "max-age=600"))
    let (list, commit) = (store.hold(.list), store.hold(.commit))
    let late = Task { try await fixture.manager.load(fixture.url).text }
    await commit.arrived()
    let next = Task {
      switch kind {
      case .purge: try await fixture.manager.purge(.url(fixture.url))
      case .removal: try await fixture.manager.remove(fixture.url)
      case .unsafeRequest: _ = try await fixture.manager.load(ResourceRequest(fixture.url, method: .post))
      }
      return try await fixture.manager.load(fixture.url).text
    }
    // The removal has listed the entries, and then the response becomes visible.
    await list.arrived()
    let removal = store.hold(.removal)
    commit.open()
    await removal.arrived()
    list.open()
    // Without waiting for the commit, the removal would end now.
    for _ in 0..<1_000 { await Task.yield() }
    removal.open()

    #expect(try await next.value == "new")
    #expect(try await late.value == "old")
  }

  @Test("a response that a load reads between its commit and its late removal does not stay in memory", arguments: [true, false])
  func promotionDuringRemoval(_ isPurge: Bool) async throws {
    let (fixture, store) = try ManagerFixture.held { $0.waitForStores() }
    fixture.network.respond(to: fixture.url, with: .ok("old", cacheControl: "max-age=600"))
    let (list, commit) = (store.hold(.list), store.hold(.commit))
    // This load does not know the memory store, so its late removal does not empty it.
    let late = Task { try await fixture.manager.load(fixture.url, options: RequestOptions { $0.memory = .disabled }).text }
    await commit.arrived()
    let done = Task {
      if isPurge { try await fixture.manager.purge(.url(fixture.url)) } else { try await fixture.manager.remove(fixture.url) }
    }
    await list.arrived()
    let removal = store.hold(.removal)
    commit.open()
    await removal.arrived()
    list.open()
    for _ in 0..<1_000 { await Task.yield() }
    #expect(try await fixture.manager.load(fixture.url).source == .disk)
    removal.open()

    try await done.value
    #expect(fixture.manager.cachedInMemory(fixture.url) == nil)
    #expect(try await late.value == "old" && store.base.keys.isEmpty)
  }

  @Test("clearing, purging and removing do not wait for commits to the store of a single request")
  func separateStore() async throws {
    let fixture = try ManagerFixture { $0.waitForStores() }
    fixture.network.respond(to: fixture.url, with: .ok("own", cacheControl: "max-age=600"))
    let other = HeldStore(clock: fixture.clock)
    let commit = other.hold(.commit)
    let load = Task { try await fixture.manager.load(fixture.url, options: RequestOptions { $0.store = .use(other) }).text }
    await commit.arrived()
    try await fixture.manager.clear()
    try await fixture.manager.purge(.everything)
    try await fixture.manager.remove(fixture.url)
    commit.open()
    #expect(try await load.value == "own")
  }

  @Test("a prefetch to disk fails if the response was purged before it was stored")
  func purgedPrefetch() async throws {
    let fixture = try ManagerFixture()
    let gate = Gate()
    fixture.network.respond(to: fixture.url, with: .ok("old", cacheControl: "max-age=600").bodyHeld(by: gate))
    let prefetch = Task { await fixture.manager.prefetch([fixture.url], into: .disk) }
    await gate.arrived()
    try await fixture.manager.purge(.url(fixture.url))
    gate.open()

    let report = await prefetch.value
    #expect(report.loaded == 0 && report.failed.first?.error.code == .notCached)
  }

  @Test("a 304 that is stored on disk during a soft purge does not make the response in memory fresh again")
  func softPurgeDuringConfirmation() async throws {
    let (fixture, store) = try ManagerFixture.held { $0.waitForStores() }
    fixture.network.respond(
      to: fixture.url, with: .ok("body", etag: "\"1\"", cacheControl: "max-age=600"), .notModified(cacheControl: "max-age=600"))
    _ = try await fixture.manager.load(fixture.url)
    let confirmation = store.hold(.metadata)
    let late = Task { try await fixture.manager.load(fixture.url, options: .policy(.revalidate())).text }
    await confirmation.arrived()

    // The purge waits for the confirmation, after it has marked the entry on disk.
    let purge = Task { try await fixture.manager.purge(.url(fixture.url), .soft) }
    let resource = try #require(store.base.keys.first).resource
    try await Polling.until {
      try await store.base.variants(of: resource).allSatisfy { !$0.metadata.freshness.isFresh(at: fixture.clock.now) }
    }
    let settling = store.hold(.metadata)
    confirmation.open()
    await settling.arrived()

    #expect(fixture.manager.cachedInMemory(fixture.url) == nil)
    settling.open()
    #expect(try await late.value == "body")
    _ = try await purge.value
    #expect(fixture.manager.cachedInMemory(fixture.url) == nil)
  }

  @Test("a response that was requested before a soft purge is stored as a stale one", arguments: LoadMethod.allCases)
  func soft(_ method: LoadMethod) async throws {
    let fixture = try ManagerFixture()
    let gate = Gate()
    fixture.network.respond(
      to: fixture.url, with: .ok("old", etag: "\"1\"", cacheControl: "max-age=600", fields: tagged).bodyHeld(by: gate),
      .notModified(cacheControl: "max-age=600"))
    let late = Task { try await fixture.send(method) }
    await gate.arrived()

    try await fixture.manager.purge(.tag("t"), .soft)
    gate.open()

    #expect(try await late.value == "old")
    #expect(try await fixture.manager.lookup(fixture.url, options: RequestOptions { $0.reads = .disk }) == .disk(isFresh: false))
    #expect(try await fixture.manager.load(fixture.url).source == .revalidated)
  }

  @Test("a response that a purge does not match is stored")
  func unmet() async throws {
    let fixture = try ManagerFixture()
    let gate = Gate()
    fixture.network.respond(to: fixture.url, with: .ok("old", cacheControl: "max-age=600", fields: tagged).bodyHeld(by: gate))
    let late = Task { try await fixture.send(.load) }
    await gate.arrived()

    try await fixture.manager.purge(.tag("other"))
    try await fixture.manager.purge(.everything, in: .partition("tenant"))
    gate.open()

    _ = try await late.value
    #expect(try await fixture.manager.lookup(fixture.url) == .memory(isFresh: true))
    #expect(fixture.disk.keys.count == 1)
  }

  @Test("a purge that matches only the new response also removes the response that it replaces")
  func replaced() async throws {
    let fixture = try ManagerFixture()
    let gate = Gate()
    fixture.network.respond(
      to: fixture.url, with: .ok("older", etag: "\"0\"", cacheControl: "max-age=600"),
      .ok("old", etag: "\"1\"", cacheControl: "max-age=600", fields: tagged).bodyHeld(by: gate))
    _ = try await fixture.manager.load(fixture.url)
    let late = Task { try await fixture.manager.load(fixture.url, options: .policy(.revalidate())).text }
    await gate.arrived()

    try await fixture.manager.purge(.tag("t"))
    gate.open()

    #expect(try await late.value == "old")
    #expect(try await fixture.manager.lookup(fixture.url) == .miss)
    #expect(fixture.disk.keys.isEmpty)
  }

  @Test("a 304 that was requested before a soft purge makes no response fresh", arguments: [LoadMethod.load, .exchange])
  func lateConfirmation(_ method: LoadMethod) async throws {
    let fixture = try ManagerFixture()
    let gate = Gate()
    fixture.network.respond(
      to: fixture.url, with: .ok("old", etag: "\"1\"", cacheControl: "max-age=1"),
      .notModified(cacheControl: "max-age=600").held(by: gate), .notModified(cacheControl: "max-age=600"))
    _ = try await fixture.send(method)
    fixture.clock.advance(by: .seconds(5))
    let late = Task { try await fixture.send(method) }
    await gate.arrived()

    try await fixture.manager.purge(.url(fixture.url), .soft)
    gate.open()

    #expect(try await late.value == "old")
    #expect(try await fixture.manager.lookup(fixture.url) != .memory(isFresh: true))
    #expect(try await fixture.manager.load(fixture.url).source == .revalidated)
    try fixture.network.verify()
  }

  @Test("a request after a purge does not join a request before it")
  func joining() async throws {
    let fixture = try ManagerFixture()
    let gate = Gate()
    fixture.network.respond(
      to: fixture.url, with: .ok("old", cacheControl: "max-age=600").bodyHeld(by: gate), .ok("new", cacheControl: "max-age=600"))
    let late = Task { try await fixture.manager.load(fixture.url).text }
    await gate.arrived()

    try await fixture.manager.purge(.url(fixture.url))

    let next = Task { try await fixture.manager.load(fixture.url).text }
    // A request that had joined would wait behind the gate, and send nothing.
    try await Polling.until { fixture.network.requests.count == 2 }
    #expect(try await next.value == "new")
    gate.open()
    #expect(try await late.value == "old")
    #expect(try await fixture.manager.load(fixture.url).text == "new")
    fixture.restart()
    #expect(try await fixture.manager.load(fixture.url).text == "new")
  }

  @Test("a response is not stored if more purges by tag than a manager remembers followed its request")
  func many() async throws {
    let fixture = try ManagerFixture()
    let gate = Gate()
    fixture.network.respond(to: fixture.url, with: .ok("old", cacheControl: "max-age=600", fields: tagged).bodyHeld(by: gate))
    let late = Task { try await fixture.manager.load(fixture.url).text }
    await gate.arrived()

    try await fixture.manager.purge(.tag("t"))
    for index in 0..<2_000 { try await fixture.manager.purge(.tag("\(index)")) }
    gate.open()

    #expect(try await late.value == "old")
    #expect(fixture.memory.count == 0 && fixture.disk.keys.isEmpty)
  }
}

@Suite("Purging stores that fail")
struct PurgeFailureTests {
  @Test("a store that cannot list its entries is an error for a tag, but not for a URL, and the other layer is purged")
  func unlistable() async throws {
    let store = UnlistedStore()
    let fixture = try ManagerFixture { $0.store = store }
    fixture.network.serve(fixture.url) { _ in .ok("a", etag: "\"1\"", cacheControl: "max-age=600", fields: tagged) }
    _ = try await fixture.manager.load(fixture.url)

    for selection in [PurgeSelection.tag("t"), .prefix(fixture.url), .everything] {
      let error = await #expect(throws: CacheError.self) { try await fixture.manager.purge(selection) }
      #expect(error?.code == .unsupported && error?.reason.contains("UnlistedStore") == true)
    }
    #expect(fixture.memory.count == 0)
    #expect(try await fixture.manager.purge(.url(fixture.url)) == 1)
    #expect(try await fixture.manager.lookup(fixture.url) == .miss)
  }

  @Test("a memory store that cannot list its entries is an error, and the disk is purged")
  func unlistableMemory() async throws {
    let fixture = try ManagerFixture { $0.memory = UnlistedMemory() }
    fixture.network.serve(fixture.url) { _ in .ok("a", etag: "\"1\"", cacheControl: "max-age=600", fields: tagged) }
    _ = try await fixture.manager.load(fixture.url)

    let error = await #expect(throws: CacheError.self) { try await fixture.manager.purge(.tag("t")) }

    #expect(error?.code == .unsupported && error?.reason.contains("UnlistedMemory") == true)
    #expect(fixture.disk.keys.isEmpty)
    #expect(try await fixture.manager.purge(.url(fixture.url)) == 1)
    #expect(try await fixture.manager.lookup(fixture.url) == .miss)
  }

  @Test("a disk that fails is an error, and memory is purged", arguments: PurgeMode.allCases)
  func failing(_ mode: PurgeMode) async throws {
    let fixture = try ManagerFixture()
    fixture.network.respond(to: fixture.url, with: .ok("a", etag: "\"1\"", cacheControl: "max-age=600", fields: tagged))
    _ = try await fixture.manager.load(fixture.url)
    fixture.disk.failure = CacheError(.fileSystem, reason: "Input/output error", path: "/disk", errno: 5)

    for selection in [PurgeSelection.url(fixture.url), .tag("t")] {
      let error = await #expect(throws: CacheError.self) { try await fixture.manager.purge(selection, mode) }
      #expect(error?.code == .fileSystem && error?.path == "/disk")
    }
    #expect(
      try await fixture.manager.lookup(fixture.url, options: RequestOptions { $0.reads = .memory }) != .memory(isFresh: true))
  }
}

/// A store that does not implement listing.
final class UnlistedStore: CacheStore {
  let id = ComponentID.unique(UnlistedStore.self)
  private let base = VolatileStore()

  func variants(of resource: String) async throws(CacheError) -> [StoredEntry] { try await base.variants(of: resource) }
  func entry(for key: CacheKey, range: Range<Int64>?) async throws(CacheError) -> StoredEntry? {
    try await base.entry(for: key, range: range)
  }
  func makeWriter(for key: CacheKey, metadata: StoredMetadata) async throws(CacheError) -> any EntryWriter {
    try await base.makeWriter(for: key, metadata: metadata)
  }
  func updateMetadata(of key: CacheKey, to metadata: StoredMetadata, ifRevision: Revision) async throws(CacheError) -> Bool {
    try await base.updateMetadata(of: key, to: metadata, ifRevision: ifRevision)
  }
  func remove(_ key: CacheKey, ifRevision: Revision?) async throws(CacheError) {
    try await base.remove(key, ifRevision: ifRevision)
  }
  func removeAll() async throws(CacheError) { try await base.removeAll() }
}

private final class UnlistedMemory: MemoryStoring {
  let id = ComponentID.unique(UnlistedMemory.self)
  private let base = MemoryCache(limits: .init(cost: 1 << 20))

  func entry(for key: CacheKey) -> MemoryEntry? { base.entry(for: key) }
  func insert(_ entry: MemoryEntry, for key: CacheKey) -> Bool { base.insert(entry, for: key) }
  func update(_ key: CacheKey, _ change: (MemoryEntry?) -> MemoryUpdate) -> Bool { base.update(key, change) }
  func remove(_ key: CacheKey, ifRevision: Revision?) { base.remove(key, ifRevision: ifRevision) }
  func removeAll() { base.removeAll() }
}
