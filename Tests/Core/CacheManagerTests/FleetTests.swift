import CacheCore
import CacheManager
import CacheTesting
import Foundation
import HTTPTypes
import MemoryStore
import Testing

/// Managers of one fleet stand for processes. They share a store and the network, and each has its own memory.
@Suite("Fleets")
struct FleetTests {
  private let fleet: LocalFleet
  private let fixture: ManagerFixture
  private let other: ResourceManager

  init() throws {
    let fleet = LocalFleet()
    self.fleet = fleet
    fixture = try ManagerFixture {
      $0.fleet = fleet
      // Only the test of this limit reaches it.
      $0.collapseTimeout = .seconds(86_400)
      $0.waitForStores()
    }
    var configuration = fixture.manager.configuration
    configuration.memory = MemoryCache(limits: .init(cost: 10 << 20), clock: fixture.clock)
    other = ResourceManager(configuration)
  }

  private var url: URL { fixture.url }

  private func respond(_ manager: ResourceManager, _ fields: HTTPFields = [:]) async throws -> (head: HTTPResponse, text: String)
  {
    var request = HTTPRequest(method: .get, scheme: "https", authority: "example.com", path: "/image.png")
    request.headerFields = fields
    let response = try await manager.respond(to: request)
    return (response.head, String(decoding: try await response.body.collect(), as: UTF8.self))
  }

  /// Moves the clock until `work` has ended, so that waiting for a lease ends. The clock stands still while no task sleeps. A
  /// response therefore does not become stale on a slow machine.
  private func advancing<Value: Sendable>(_ work: @escaping @Sendable () async throws -> Value) async throws -> Value {
    let hasEnded = Lock(false)
    async let value = {
      defer { hasEnded.withLock { $0 = true } }
      return try await work()
    }()
    while !hasEnded.withLock({ $0 }) {
      if fixture.clock.pendingSleeps > 0 { fixture.clock.advance(by: .milliseconds(1)) }
      await Task.yield()
    }
    return try await value
  }

  /// Returns the result of a request that waits for a lease. The clock stands still until the lease has ended.
  private func result<Value: Sendable>(of waiting: Task<Value, any Error>) async throws -> Value {
    try await Polling.until { !fleet.ends.isEmpty }
    return try await advancing { try await waiting.value }
  }

  @Test("a request with a store of its own has no lease, because other processes do not read that store")
  func ownStore() async throws {
    fixture.network.respond(to: url, with: .ok("a", cacheControl: "max-age=60"))
    let store = VolatileStore(clock: fixture.clock)

    _ = try await fixture.manager.load(url, options: RequestOptions { $0.store = .use(store) })

    #expect(fleet.granted == 0 && store.keys.count == 1)
  }

  @Test("without contact to the fleet, a store of the request's own is used as before")
  func ownStoreWithoutContact() async throws {
    fixture.network.serve(url) { _ in .ok("a", cacheControl: "max-age=60") }
    let store = VolatileStore(clock: fixture.clock)
    let options = RequestOptions { $0.store = .use(store) }
    _ = try await fixture.manager.load(url, options: options)

    fleet.isConnected = false

    #expect(!fixture.manager.isCurrentInFleet)
    #expect(try await fixture.manager.load(url, options: options).source == .disk)
  }

  @Test("one process sends the request and the others read its response")
  func shared() async throws {
    let gate = Gate()
    fixture.network.respond(to: url, with: .ok("a", cacheControl: "max-age=60").held(by: gate))
    async let first = fixture.manager.load(url)
    await gate.arrived()
    let second = Task { [other, url] in try await other.load(url) }
    await fixture.clock.sleepers(1)
    gate.open()
    #expect(try await first.text == "a")
    let resource = try await result(of: second)
    #expect(resource.text == "a")
    #expect(resource.source == .disk)
    #expect(fixture.network.requests.count == 1)
    #expect(fleet.ends == [.stored])
  }

  @Test("responses for HTTP callers are shared between processes")
  func responses() async throws {
    let gate = Gate()
    fixture.network.respond(to: url, with: .ok("a", cacheControl: "max-age=86400").held(by: gate))
    async let first = respond(fixture.manager)
    await gate.arrived()
    // The second request of the other process waits for the first one of that process, and not for the lease.
    let second = Task { try await respond(other) }
    async let third = respond(other)
    await fixture.clock.sleepers(1)
    gate.open()
    #expect(try await first.text == "a")
    #expect(try await result(of: second).text == "a")
    #expect(try await third.text == "a")
    #expect(fixture.network.requests.count == 1)
  }

  @Test("a process that stops before the end hands its request over")
  func handedOver() async throws {
    let gate = Gate()
    fixture.network.respond(to: url, with: .ok("a").held(by: gate), .ok("b", cacheControl: "max-age=60"))
    let first = Task { try await fixture.manager.load(url) }
    await gate.arrived()
    let second = Task { [other, url] in try await other.load(url) }
    await fixture.clock.sleepers(1)
    first.cancel()
    #expect(try await result(of: second).text == "b")
    #expect(fleet.ends == [.abandoned, .stored])
    gate.open()
  }

  @Test("a process that has waited for a lease uses a response that was stored before the lease ended without it")
  func endedAfterStoring() async throws {
    fixture.network.respond(to: url, with: .ok("a", cacheControl: "max-age=60"))
    let reply = try await fleet.requestLease(of: url.absoluteString, selection: "", lookedUpAt: nil)
    guard case .granted(let lease) = reply else { return #expect(Bool(false), "the lease is held: \(reply)") }
    let waiting = Task { try await other.load(url) }
    await fixture.clock.sleepers(1)
    var alone = fixture.manager.configuration
    alone.fleet = nil
    _ = try await ResourceManager(alone).load(url)
    lease.abandon()
    let resource = try await advancing { try await waiting.value }
    #expect((resource.text, resource.source) == ("a", .disk))
    #expect(fixture.network.requests.count == 1)
    // Other processes that wait learn that there is a response.
    #expect(fleet.ends == [.abandoned, .stored])
  }

  @Test("processes do not wait for each other if the response cannot be stored")
  func notStored() async throws {
    fixture.network.respond(
      to: url, with: .ok("a", cacheControl: "no-store"), .ok("b", cacheControl: "no-store"), .ok("c", cacheControl: "no-store"))
    #expect(try await fixture.manager.load(url).text == "a")
    #expect(try await other.load(url).text == "b")
    #expect(try await fixture.manager.load(url).text == "c")
    #expect(fleet.granted == 1)
    #expect(fleet.ends == [.notShared(for: .seconds(120))])
  }

  @Test("processes do not wait for each other if each use needs the origin")
  func revalidatedEachTime() async throws {
    fixture.network.respond(to: url, with: .ok("a", etag: "1", cacheControl: "no-cache"), .notModified(etag: "1"))
    #expect(try await fixture.manager.load(url).text == "a")
    #expect(try await other.load(url).validation == .notModified)
    #expect(fleet.ends == [.notShared(for: .seconds(120))])
  }

  @Test("processes do not wait for each other after the origin has failed")
  func failedOrigin() async throws {
    fixture.network.respond(to: url, with: .failure(.connectionRefused), .failure(.connectionRefused))
    for manager in [fixture.manager, other] {
      let error = await #expect(throws: CacheError.self) { try await manager.load(url) }
      #expect(error?.code == .connectionRefused)
    }
    #expect(fleet.granted == 1)
    #expect(fleet.ends == [.notShared(for: .seconds(1))])
  }

  @Test("a stale response is revalidated by one process")
  func stale() async throws {
    fixture.network.respond(
      to: url, with: .ok("a", etag: "1", cacheControl: "max-age=60"), .notModified(etag: "1", cacheControl: "max-age=60"))
    #expect(try await fixture.manager.load(url).text == "a")
    #expect(try await other.load(url).text == "a")
    fixture.clock.advance(by: .seconds(61))
    #expect(try await fixture.manager.load(url).validation == .notModified)
    // Its memory has the stale response, and the store has a fresh one.
    let resource = try await other.load(url)
    #expect(resource.text == "a")
    #expect(resource.source != .network)
    #expect(fixture.network.requests.count == 2)
  }

  @Test("a background revalidation uses the response of another process")
  func background() async throws {
    fixture.network.respond(
      to: url, with: .ok("a", etag: "1", cacheControl: "max-age=60, stale-while-revalidate=600"),
      .ok("b", etag: "2", cacheControl: "max-age=60, stale-while-revalidate=600"))
    #expect(try await respond(fixture.manager).text == "a")
    #expect(try await respond(other).text == "a")
    fixture.clock.advance(by: .seconds(61))
    #expect(try await respond(fixture.manager).text == "a")
    try await Polling.until { fleet.ends == [.stored, .stored] }
    #expect(try await respond(other).text == "a")
    try await Polling.until { try await respond(other).text == "b" }
    #expect(fixture.network.requests.count == 2)
  }

  @Test("other variants have leases of their own")
  func variants() async throws {
    fixture.network.serve(url) { request in
      .ok(
        request.headerFields[.acceptLanguage] ?? "", cacheControl: "max-age=60", fields: .field("Vary", "Accept-Language"))
    }
    #expect(try await respond(fixture.manager, [.acceptLanguage: "de"]).text == "de")
    #expect(try await respond(other, [.acceptLanguage: "fr"]).text == "fr")
    #expect(try await respond(fixture.manager, [.acceptLanguage: "fr"]).text == "fr")
    #expect(fixture.network.requests.count == 2)
    #expect(fleet.names.contains { $0.selection.contains("fr") })
  }

  @Test(
    "a request whose response is for one caller has no lease",
    arguments: [
      [.authorization: "Basic eDp5"], [.range: "bytes=0-1"], [.cacheControl: "no-store"], [.cacheControl: "no-cache"],
      [.ifNoneMatch: "\"1\""],
    ] as [HTTPFields])
  func forOneCaller(fields: HTTPFields) async throws {
    fixture.network.serve(url) { _ in .ok("a", cacheControl: "max-age=60") }
    _ = try await respond(fixture.manager, fields)
    #expect(fleet.names.isEmpty)
  }

  @Test("a load that must reach the origin has no lease", arguments: [LoadPolicy.reload, .memoryElseReload, .revalidate()])
  func mustReachOrigin(policy: LoadPolicy) async throws {
    fixture.network.serve(url) { _ in .ok("a", cacheControl: "max-age=60") }
    #expect(try await fixture.manager.load(url, options: .policy(policy)).text == "a")
    #expect(fleet.names.isEmpty)
  }

  @Test("requests are sent without a lease if the fleet cannot be reached, and Cache-Status names the error")
  func unreachable() async throws {
    fixture.network.respond(to: url, with: .ok("a", cacheControl: "max-age=60"), .ok("b", cacheControl: "max-age=60"))
    #expect(try await respond(fixture.manager).text == "a")
    fixture.clock.advance(by: .seconds(61))
    fleet.failure = CacheError(.storeUnavailable, reason: "no server")
    let response = try await respond(fixture.manager)
    #expect(response.text == "b")
    let field = try #require(HTTPField.Name("Cache-Status"))
    let status = try #require(response.head.headerFields[field])
    #expect(status.contains("fwd=stale") && status.hasSuffix("detail=storeUnavailable"), "\(status)")
    let failures = fixture.observer.events.filter {
      if case .readFailed(_, let error) = $0 { error.code == .storeUnavailable } else { false }
    }
    #expect(failures.count == 1)
  }

  @Test("a request does not wait longer than the limit")
  func limited() async throws {
    let gate = Gate()
    fixture.network.respond(
      to: url, with: .ok("a", cacheControl: "max-age=60").held(by: gate), .ok("b", cacheControl: "max-age=60"))
    async let first = fixture.manager.load(url)
    await gate.arrived()
    var configuration = other.configuration
    configuration.collapseTimeout = .seconds(5)
    let hasty = ResourceManager(configuration)
    let start = fixture.clock.uptime
    let second = try await advancing { [url] in try await hasty.load(url) }
    #expect(second.text == "b")
    #expect(fixture.clock.uptime - start >= .milliseconds(2_500))
    gate.open()
    #expect(try await first.text == "a")
  }

  @Test("a cancelled load stops waiting for the lease")
  func cancelled() async throws {
    let gate = Gate()
    fixture.network.respond(to: url, with: .ok("a", cacheControl: "max-age=60").held(by: gate))
    async let first = fixture.manager.load(url)
    await gate.arrived()
    let second = Task { [other, url] in try await other.load(url) }
    await fixture.clock.sleepers(1)
    second.cancel()
    let error = await #expect(throws: CacheError.self) { try await second.value }
    #expect(error?.isCancellation == true)
    gate.open()
    #expect(try await first.text == "a")
  }

  @Test("processes do not wait for the body of a response that they cannot use")
  func longBody() async throws {
    let gate = Gate()
    fixture.network.respond(
      to: url, with: .ok("a", etag: "1", cacheControl: "no-cache").bodyHeld(by: gate), .ok("b", cacheControl: "no-cache"))
    async let first = fixture.manager.load(url)
    await gate.arrived()
    #expect(fleet.ends == [.notShared(for: .seconds(120))])
    #expect(try await other.load(url).text == "b")
    gate.open()
    #expect(try await first.text == "a")
  }

  @Test("a response that was superseded by another process is not stored, and the later one stays")
  func superseded() async throws {
    let later = SupersedingStore(fixture.disk)
    var configuration = fixture.manager.configuration
    configuration.store = later
    let manager = ResourceManager(configuration)
    fixture.network.respond(to: url, with: .ok("old", etag: "1", cacheControl: "max-age=1"))
    _ = try await other.load(url)
    fixture.clock.advance(by: .seconds(2))
    fixture.network.respond(to: url, with: .ok("late", etag: "2", cacheControl: "max-age=60"))
    #expect(try await manager.load(url).text == "late")
    #expect(later.superseded == 1)
    #expect(manager.cachedInMemory(url) == nil)
    let stored = try await fixture.disk.entries()
    #expect(stored.map { $0.metadata.response.headerFields[.eTag] } == ["\"later\""])
    #expect(try await manager.load(url).response.headerFields[.eTag] == "\"later\"")
  }

  @Test("a response that was requested after a purge is stored, although its request waited since before it")
  func purgedMeanwhile() async throws {
    let gate = Gate()
    fixture.network.respond(
      to: url, with: .ok("a", cacheControl: "max-age=60").held(by: gate), .ok("b", cacheControl: "max-age=60"))
    let first = Task { try await fixture.manager.load(url) }
    await gate.arrived()
    let second = Task { [other, url] in try await other.load(url) }
    await fixture.clock.sleepers(1)
    try await other.purge(.everything)
    first.cancel()
    #expect(try await result(of: second).text == "b")
    #expect(try await other.contains(url))
    gate.open()
  }

  @Test("processes do not wait for a response that the shared store refuses")
  func refusedByStore() async throws {
    fixture.disk.refusesWrites = true
    fixture.network.respond(to: url, with: .ok("a", cacheControl: "max-age=60"), .ok("b", cacheControl: "max-age=60"))
    #expect(try await fixture.manager.load(url).text == "a")
    #expect(try await other.load(url).text == "b")
    #expect(fleet.ends == [.notShared(for: .seconds(120))])
  }
}

/// A store in which another process stores a later response just before each commit under a lease.
private final class SupersedingStore: CacheStore {
  let id = ComponentID.unique(SupersedingStore.self)
  private let inner: VolatileStore
  private let count = Lock(0)

  init(_ inner: VolatileStore) { self.inner = inner }

  /// The number of refused commits.
  var superseded: Int { count.withLock { $0 } }

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
    CollectingWriter(metadata) { [self] metadata, _ throws(CacheError) in
      var later = metadata
      later.revision = .random()
      later.response.headerFields[.eTag] = "\"later\""
      try await inner.store(Data("later".utf8), for: key, metadata: later)
      count.withLock { $0 += 1 }
      throw CacheError(.superseded, reason: "superseded")
    }
  }

  func updateMetadata(of key: CacheKey, to metadata: StoredMetadata, ifRevision: Revision) async throws(CacheError) -> Bool {
    try await inner.updateMetadata(of: key, to: metadata, ifRevision: ifRevision)
  }

  func remove(_ key: CacheKey, ifRevision: Revision?) async throws(CacheError) {
    try await inner.remove(key, ifRevision: ifRevision)
  }

  func removeAll() async throws(CacheError) { try await inner.removeAll() }

  func entries(
    where isWanted: @escaping @Sendable (CacheKey, StoredMetadata) -> Bool
  ) async throws(CacheError) -> [ListedEntry] {
    try await inner.entries(where: isWanted)
  }
}
