import CacheCore
import CacheManager
import CacheTesting
import Foundation
import HTTPTypes
import MemoryStore
import Testing

/// Managers of one fleet stand for processes. Each has a memory and a disk of its own.
@Suite("Purges in a fleet")
struct FleetPurgeTests {
  private let fleet = LocalFleet()
  private let fixture: ManagerFixture
  private let other: ResourceManager

  init() throws {
    fixture = try ManagerFixture { [fleet] in $0.fleet = fleet }
    var configuration = fixture.manager.configuration
    configuration.memory = MemoryCache(limits: .init(cost: 10 << 20), clock: fixture.clock)
    configuration.store = VolatileStore(clock: fixture.clock)
    other = ResourceManager(configuration)
  }

  private var url: URL { fixture.url }

  private func serve(_ fields: HTTPFields = [:]) {
    let count = Lock(0)
    fixture.network.serve(url) { request in
      let number = count.withLock { count in
        count += 1
        return count
      }
      guard request.headerFields[.ifNoneMatch] == nil else { return .notModified(etag: "1", cacheControl: "max-age=60") }
      return .ok("\(number)", etag: "1", cacheControl: "max-age=60", fields: fields)
    }
  }

  @Test(
    "a purge removes responses from the memory and the disk of every process",
    arguments: [.everything, .tag("news")] as [PurgeSelection])
  func hard(selection: PurgeSelection) async throws {
    serve(.field("Cache-Tag", "news"))
    #expect(try await fixture.manager.load(url).text == "1")
    #expect(try await other.load(url).text == "2")
    #expect(try await fixture.manager.purge(selection) == 1)
    #expect(try await !other.contains(url))
    #expect(try await other.load(url).text == "3")
  }

  @Test("a purge by URL, key or prefix reaches every process, and only its partition")
  func selections() async throws {
    serve()
    let key = RequestOptions { $0.key = "k" }
    let partition = RequestOptions { $0.partition = "p" }
    for (selection, options) in [(.url(url), RequestOptions()), (.key("k"), key), (.prefix(url), RequestOptions())]
      as [(PurgeSelection, RequestOptions)]
    {
      _ = try await other.load(url, options: options)
      _ = try await other.load(url, options: partition)
      try await fixture.manager.purge(selection)
      #expect(try await !other.contains(url, options: options), "\(selection)")
      #expect(try await other.contains(url, options: partition), "\(selection)")
    }
    try await fixture.manager.purge(.url(url), in: .partition("p"))
    #expect(try await !other.contains(url, options: partition))
  }

  @Test("after a soft purge, every process revalidates the response")
  func soft() async throws {
    serve()
    #expect(try await other.load(url).text == "1")
    try await fixture.manager.purge(.everything, .soft)
    let resource = try await other.load(url)
    #expect(resource.text == "1")
    #expect(resource.validation == .notModified)
  }

  @Test("a response that another process requested before the purge is not stored")
  func running() async throws {
    let gate = Gate()
    fixture.network.respond(
      to: url, with: .ok("old", cacheControl: "max-age=60").held(by: gate), .ok("new", cacheControl: "max-age=60"))
    async let old = other.load(url)
    await gate.arrived()
    try await fixture.manager.purge(.url(url))
    gate.open()
    #expect(try await old.text == "old")
    #expect(try await other.load(url).text == "new")
  }

  @Test("a process without contact revalidates each response, and uses it again after the contact is restored")
  func withoutContact() async throws {
    serve()
    #expect(try await other.load(url).text == "1")
    #expect(other.isCurrentInFleet)
    fleet.isConnected = false
    #expect(!other.isCurrentInFleet)
    for _ in 0..<2 { #expect(try await other.load(url).validation == .notModified) }
    #expect(other.cachedInMemory(url) == nil)
    #expect(fixture.network.requests.count == 3)
    await fleet.reconnect()
    #expect(other.isCurrentInFleet)
    // It may have missed a purge.
    #expect(try await other.load(url).validation == .notModified)
    #expect(try await other.load(url).source == .memory)
    #expect(fixture.network.requests.count == 4)
  }

  @Test("a manager is not current after it was closed, and a manager without a fleet is current")
  func closedManager() async throws {
    #expect(other.isCurrentInFleet)
    await other.close()
    #expect(!other.isCurrentInFleet)
    #expect(try ManagerFixture().manager.isCurrentInFleet)
  }

  @Test("a process without contact serves a stored response if the origin fails as well")
  func withoutContactAndOrigin() async throws {
    fixture.network.respond(
      to: url, with: .ok("a", etag: "1", cacheControl: "max-age=60"), .failure(.connectionRefused))
    #expect(try await other.load(url).text == "a")
    fleet.isConnected = false
    let resource = try await other.load(url)
    #expect(resource.text == "a")
    #expect(resource.fallbackReason?.code == .connectionRefused)
  }

  @Test("a process without contact and without a validator does not use its responses")
  func withoutValidator() async throws {
    serve()
    var configuration = other.configuration
    configuration.validator = nil
    let plain = ResourceManager(configuration)
    #expect(try await plain.load(url).text == "1")
    fleet.isConnected = false
    #expect(try await plain.load(url).text == "2")
    #expect(try await plain.load(url, options: .policy(.cacheFirst)).text == "2")
  }

  @Test("a purge without contact is an error, and it is carried out in its own process")
  func unreachable() async throws {
    serve()
    _ = try await fixture.manager.load(url)
    fleet.isConnected = false
    let error = await #expect(throws: CacheError.self) { try await fixture.manager.purge(.everything) }
    #expect(error?.code == .storeUnavailable)
    #expect(fixture.disk.keys.isEmpty)
  }

  @Test("the shared part of the store is purged first, and then all processes at the same time", .timeLimit(.minutes(30)))
  func order() async throws {
    // Given
    let shared = HeldStore(clock: fixture.clock)
    let stores = [HeldStore(clock: fixture.clock), HeldStore(clock: fixture.clock)]
    let managers = stores.map { own in
      var configuration = fixture.manager.configuration
      configuration.memory = nil
      configuration.store = PartedStore(own: own, shared: shared)
      return ResourceManager(configuration)
    }
    serve()
    _ = try await fixture.manager.load(url)
    for entry in try await fixture.disk.entries() {
      for store in stores + [shared] { try await store.base.store(Data("a".utf8), for: entry.key, metadata: entry.metadata) }
    }

    // When
    let first = shared.hold(.removal)
    let others = stores.map { $0.hold(.removal) }
    let purge = Task { try await managers[0].purge(.everything) }
    await first.arrived()
    for _ in 0..<100 { await Task.yield() }
    #expect(others.map(\.arrivals) == [0, 0])
    first.open()
    for gate in others { await gate.arrived() }
    #expect(shared.base.keys.isEmpty)
    for gate in others { gate.open() }

    // Then
    #expect(try await purge.value == 1)
    #expect((stores + [shared]).allSatisfy { $0.base.keys.isEmpty })
  }

  @Test("a shared part that cannot be purged does not prevent the purge of the other part")
  func failingSharedPart() async throws {
    let (own, shared) = (VolatileStore(clock: fixture.clock), VolatileStore(clock: fixture.clock))
    var configuration = fixture.manager.configuration
    configuration.store = PartedStore(own: own, shared: shared)
    let manager = ResourceManager(configuration)
    serve()
    _ = try await manager.load(url)
    shared.failure = CacheError(.storeUnavailable, reason: "the server is away")
    let error = await #expect(throws: CacheError.self) { try await manager.purge(.everything) }
    #expect(error?.code == .storeUnavailable)
    #expect(own.keys.isEmpty)
  }

  @Test("an entry that is stored after the shared part was listed is purged in both parts", .timeLimit(.minutes(30)))
  func storedMeanwhile() async throws {
    // Given
    let (own, shared) = (VolatileStore(clock: fixture.clock), HeldStore(clock: fixture.clock))
    var configuration = fixture.manager.configuration
    configuration.store = PartedStore(own: own, shared: shared)
    let manager = ResourceManager(configuration)
    serve()
    _ = try await fixture.manager.load(url)
    let entry = try #require(try await fixture.disk.entries().first)
    try await shared.base.store(Data("a".utf8), for: entry.key, metadata: entry.metadata)

    // When
    let gate = shared.hold(.removal)
    let purge = Task { try await manager.purge(.everything) }
    await gate.arrived()
    for store in [own, shared.base] {
      try await store.store(Data("b".utf8), for: entry.key.with(transform: "t"), metadata: entry.metadata)
    }
    gate.open()

    // Then
    #expect(try await purge.value == 1)
    #expect(own.keys.isEmpty && shared.base.keys.isEmpty)
  }

  @Test("an unknown message makes every stored response stale")
  func unknown() async throws {
    serve()
    _ = try await other.load(url)
    let sender = fleet.join(receive: { _, _ in }, missed: {})
    try await sender.broadcast("{\"step\":\"later\"}")
    #expect(try await other.load(url).validation == .notModified)
  }

  @Test("a process whose disk fails during a purge does not serve what the purge selects")
  func failingDisk() async throws {
    serve()
    _ = try await other.load(url)
    let disk = try #require(other.configuration.store as? VolatileStore)
    disk.failure = CacheError(.fileSystem, reason: "the disk fails")
    try await fixture.manager.purge(.url(url))
    #expect(other.cachedInMemory(url) == nil)
    #expect(try await other.load(url).source == .network)
    #expect(other.cachedInMemory(url) == nil)
    disk.failure = nil
    await fleet.reconnect()
    _ = try await other.load(url)
    #expect(other.cachedInMemory(url) != nil)
  }

  @Test("a store that cannot list its entries is emptied")
  func cannotList() async throws {
    serve()
    var configuration = other.configuration
    configuration.store = UnlistedStore()
    let manager = ResourceManager(configuration)
    #expect(try await manager.load(url).text == "1")
    try await fixture.manager.purge(.tag("other"))
    #expect(try await !manager.contains(url))
  }
}

/// A store with a part that other processes use. Lookups read its own part only.
private final class PartedStore: CacheStore {
  let id = ComponentID.unique(PartedStore.self)
  private let own, shared: any CacheStore

  init(own: any CacheStore, shared: any CacheStore) { (self.own, self.shared) = (own, shared) }

  func unsharedPart() async -> (any CacheStore)? { own }
  func sharedPart() async -> (any CacheStore)? { shared }

  func variants(of resource: String) async throws(CacheError) -> [StoredEntry] { try await own.variants(of: resource) }
  func entry(for key: CacheKey, range: Range<Int64>?) async throws(CacheError) -> StoredEntry? {
    try await own.entry(for: key, range: range)
  }
  func makeWriter(for key: CacheKey, metadata: StoredMetadata) async throws(CacheError) -> any EntryWriter {
    try await own.makeWriter(for: key, metadata: metadata)
  }
  func updateMetadata(of key: CacheKey, to metadata: StoredMetadata, ifRevision: Revision) async throws(CacheError) -> Bool {
    try await own.updateMetadata(of: key, to: metadata, ifRevision: ifRevision)
  }
  func remove(_ key: CacheKey, ifRevision: Revision?) async throws(CacheError) {
    try await shared.remove(key, ifRevision: ifRevision)
    try await own.remove(key, ifRevision: ifRevision)
  }
  func removeAll() async throws(CacheError) {
    try await own.removeAll()
    try await shared.removeAll()
  }
}
