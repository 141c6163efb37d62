import CacheCore
import CacheManager
import CacheTesting
import Foundation
import HTTPTypes
import MemoryStore
import Testing

/// A store that can return its entries without waiting, once it is prepared.
private final class PreparedStore: CacheStore {
  let id = ComponentID.unique(PreparedStore.self)
  let isPrepared: Bool
  private let counts = Lock((immediate: 0, waiting: 0))
  private let entries = Lock<[CacheKey: StoredEntry]>([:])
  private let store: VolatileStore
  private let clock: any CacheClock

  init(_ store: VolatileStore, isPrepared: Bool, clock: any CacheClock) {
    (self.store, self.isPrepared, self.clock) = (store, isPrepared, clock)
  }

  /// The number of lookups without and with waiting.
  var lookups: (immediate: Int, waiting: Int) { counts.withLock { $0 } }

  /// Makes the current entries available without waiting.
  func prepare() async throws {
    var ready: [CacheKey: StoredEntry] = [:]
    for key in store.keys {
      guard var entry = try await store.entry(for: key, range: nil) else { continue }
      entry.body = ResourceBody(try await entry.body.collect(limit: .max))
      ready[key] = entry
    }
    entries.withLock { [ready] in $0 = ready }
  }

  func variantsWithoutWaiting(of resource: String) -> [StoredEntry]? {
    counts.withLock { $0.immediate += 1 }
    let now = clock.now
    let found = entries.withLock { entries in
      entries.values.filter { entry in
        entry.key.resource == resource && entry.key.transform.isEmpty
          && now < entry.metadata.expiration?.deadline(from: entry.metadata.responseTime) ?? .distantFuture
      }
    }
    return isPrepared && !found.isEmpty ? found : nil
  }

  func variants(of resource: String) async throws(CacheError) -> [StoredEntry] {
    counts.withLock { $0.waiting += 1 }
    return try await store.variants(of: resource)
  }

  func entry(for key: CacheKey, range: Range<Int64>?) async throws(CacheError) -> StoredEntry? {
    try await store.entry(for: key, range: range)
  }

  func makeWriter(for key: CacheKey, metadata: StoredMetadata) async throws(CacheError) -> any EntryWriter {
    try await store.makeWriter(for: key, metadata: metadata)
  }

  func updateMetadata(of key: CacheKey, to metadata: StoredMetadata, ifRevision: Revision) async throws(CacheError) -> Bool {
    try await store.updateMetadata(of: key, to: metadata, ifRevision: ifRevision)
  }

  func remove(_ key: CacheKey, ifRevision: Revision?) async throws(CacheError) {
    try await store.remove(key, ifRevision: ifRevision)
  }

  func removeAll() async throws(CacheError) { try await store.removeAll() }
}

@Suite("Lookups in the durable store without waiting")
struct LookupWithoutWaitingTests {
  /// A fixture after a restart: memory is empty, and the store can or cannot return the loaded entries without waiting.
  private struct Restarted {
    let fixture: ManagerFixture
    let store: PreparedStore

    init(_ situation: PlainHitTests.Situation, isPrepared: Bool) async throws {
      let stores = Lock<PreparedStore?>(nil)
      fixture = try ManagerFixture { configuration in
        guard let store = configuration.store as? VolatileStore else { return }
        let forthcoming = PreparedStore(store, isPrepared: isPrepared, clock: configuration.clock)
        stores.withLock { $0 = forthcoming }
        configuration.store = forthcoming
        configuration.storeWriteTimeout = nil
      }
      store = try #require(stores.withLock { $0 })
      let url = try fixture.url(situation.path)
      fixture.network.respond(to: url, with: situation.response)
      fixture.network.respond(to: try fixture.url("/b"), with: .ok("b", cacheControl: "max-age=60"))
      _ = try await fixture.manager.load(ResourceRequest(url, headerFields: situation.fields, options: situation.stored))
      fixture.restart()
      try await store.prepare()
      fixture.clock.advance(by: situation.age)
    }

    /// Everything that a load reports, except for its revision, which differs between fixtures.
    func told(_ situation: PlainHitTests.Situation) async throws -> String {
      let request = ResourceRequest(
        try fixture.url(situation.path), headerFields: situation.fields, options: situation.requested)
      let outcome: String
      do throws(CacheError) {
        let resource = try await fixture.manager.load(request)
        outcome = resource.toldExceptRevision
      } catch {
        outcome = "\(error)"
      }
      let memory = fixture.memory.keys().map { "\($0)" }.sorted()
      // A load that waits reports its own start.
      let events = fixture.observer.eventsOfResults.filter { if case .started = $0 { false } else { true } }
      return "\(outcome) \(fixture.network.requests) \(events.count) \(memory)"
    }
  }

  @Test("a lookup without waiting has the same result as one that waits", arguments: PlainHitTests.Situation.all)
  func agreement(_ situation: PlainHitTests.Situation) async throws {
    let short = try await Restarted(situation, isPrepared: true)
    let long = try await Restarted(situation, isPrepared: false)
    #expect(try await short.told(situation) == long.told(situation))
  }

  @Test("a hit without waiting sends no waiting lookup, and is promoted to memory")
  func hit() async throws {
    let restarted = try await Restarted(.init("fresh", isHit: true), isPrepared: true)
    let before = restarted.store.lookups
    let events = restarted.fixture.observer.eventsOfResults.count

    let first = try await restarted.fixture.manager.load(restarted.fixture.url)
    let second = try await restarted.fixture.manager.load(restarted.fixture.url)

    #expect((first.source, first.text) == (.disk, "body"))
    #expect((second.source, second.text) == (.memory, "body"))
    #expect(restarted.store.lookups == (before.immediate + 1, before.waiting))
    // The events are: stored in memory, a hit on disk, a hit in memory.
    #expect(restarted.fixture.observer.eventsOfResults.count == events + 3)
  }

  @Test("a lookup without waiting is no hit for a value, a file, a smaller body limit or a cancelled task")
  func others() async throws {
    let restarted = try await Restarted(.init("fresh", isHit: true), isPrepared: true)
    let (fixture, url) = (restarted.fixture, restarted.fixture.url)
    let before = restarted.store.lookups.immediate

    let transform = ResourceTransform<Int>(id: "count", cost: { _ in 8 }) { body, _ throws(CacheError) in
      try await body.collect(limit: .max).count
    }
    #expect(try await fixture.manager.load(url, as: transform).value == 4)
    fixture.restart()
    let error = await #expect(throws: CacheError.self) {
      try await fixture.manager.load(url, options: RequestOptions { $0.maximumBodySize = 3 })
    }
    #expect(error?.code == .bodyTooLarge)
    let task = Task {
      try? await Polling.until { Task.isCancelled }
      return try await fixture.manager.load(url)
    }
    task.cancel()
    let cancelled = await #expect(throws: CacheError.self) { try await task.value }
    #expect(cancelled?.isCancellation == true)
    // The body that is too large was looked up without waiting.
    #expect(restarted.store.lookups.immediate == before + 1)
  }

  @Test("a closed manager returns no stored response")
  func closed() async throws {
    let restarted = try await Restarted(.init("fresh", isHit: true), isPrepared: true)
    await restarted.fixture.manager.close()
    let error = await #expect(throws: CacheError.self) { try await restarted.fixture.manager.load(restarted.fixture.url) }
    #expect(error?.code == .closed)
  }
}
