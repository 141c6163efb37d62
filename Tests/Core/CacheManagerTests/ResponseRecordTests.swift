import CacheCore
import CacheManager
import CacheTesting
import Foundation
import HTTPTypes
import MemoryStore
import Testing

/// A stored value is found without the index of its resource. Everything that changes the index must end this.
@Suite("Hits without the index")
struct ResponseRecordTests {
  private struct Fixture {
    let base: ManagerFixture
    /// A resource of this fixture alone. The resources of all tests share counters, so some checks are repeated until no other
    /// test has changed one meanwhile.
    let url: URL
    let memory: ObservedMemory
    let text = TextTransformFixture()

    /// - Parameter hasDisk: Whether the manager has a durable store.
    init(hasDisk: Bool = false) throws {
      let cache = MemoryCache(limits: .init(cost: 10 << 20))
      let memory = ObservedMemory(cache)
      base = try ManagerFixture {
        $0.memory = memory
        if !hasDisk { $0.store = nil }
      }
      url = try base.url("/\(Revision.random())")
      self.memory = memory
    }

    func cached() -> Resource<Data>? { base.manager.cachedInMemory(url) }
    func cachedText() -> Resource<String>? { base.manager.cachedInMemory(url, as: text.plain()) }

    /// Makes the next hits of the bytes and of the text independent of the index.
    func confirm() throws {
      for _ in 0..<2 {
        _ = try #require(cached())
        _ = try #require(cachedText())
      }
    }
  }

  private func fixture(_ responses: ScriptedResponse...) async throws -> Fixture {
    let fixture = try Fixture()
    for response in responses { fixture.base.network.respond(to: fixture.url, with: response) }
    _ = try await fixture.base.manager.load(fixture.url)
    _ = try await fixture.base.manager.load(fixture.url, as: fixture.text.plain())
    return fixture
  }

  private static let fresh = ScriptedResponse.ok("body", etag: "\"1\"", cacheControl: "max-age=60")

  @Test("the first hit after a store is one lookup, of bytes and of a value", arguments: [false, true])
  func firstLookup(isLoad: Bool) async throws {
    try await Polling.until {
      let (bytes, text) = (try Fixture(), try Fixture())
      for fixture in [bytes, text] { fixture.base.network.respond(to: fixture.url, with: Self.fresh) }
      _ = try await bytes.base.manager.load(bytes.url)
      _ = try await text.base.manager.load(text.url, as: text.text.plain())
      let before = (bytes.memory.lookups.value, text.memory.lookups.value)
      if isLoad {
        #expect(try await bytes.base.manager.load(bytes.url).source == .memory)
        #expect(try await text.base.manager.load(text.url, as: text.text.plain()).valueOrigin == .memory)
      } else {
        #expect(bytes.cached()?.text == "body" && text.cachedText()?.value == "BO")
      }
      return (bytes.memory.lookups.value, text.memory.lookups.value) == (before.0 + 1, before.1 + 1)
    }
  }

  @Test("the second hit after a 304 is one lookup, of bytes and of a value", arguments: [false, true])
  func lookupsAfterNotModified(isLoad: Bool) async throws {
    let folder = try DownloadFolder()
    try await Polling.until {
      let fixture = try await self.fixture(Self.fresh, .notModified(cacheControl: "max-age=60"))
      let (manager, url) = (fixture.base.manager, fixture.url)
      fixture.base.clock.advance(by: .seconds(60))
      // A load into a file replaces the record, and leaves the bytes and the value in memory as they are.
      #expect(try await manager.load(url, to: folder.file()).source == .revalidated)
      var counts: [Int] = []
      for _ in 0..<2 {
        let before = fixture.memory.lookups.value
        let bytes = isLoad ? try await manager.load(url) : fixture.cached()
        let afterBytes = fixture.memory.lookups.value
        let text = isLoad ? try await manager.load(url, as: fixture.text.plain()) : fixture.cachedText()
        #expect(bytes?.source == .memory && text?.source == .memory && text?.valueOrigin == .memory)
        counts += [afterBytes - before, fixture.memory.lookups.value - afterBytes]
      }
      return counts[0] > 1 && counts[1] > 1 && counts[2...] == [1, 1]
    }
  }

  @Test("the second hit is one lookup, of bytes and of a value")
  func lookups() async throws {
    let fixture = try await fixture(Self.fresh)
    try await Polling.until {
      try fixture.confirm()
      let before = fixture.memory.lookups.value
      #expect(fixture.cached()?.text == "body")
      let afterBytes = fixture.memory.lookups.value
      #expect(fixture.cachedText()?.value == "BO")
      let afterText = fixture.memory.lookups.value
      #expect(try await fixture.base.manager.load(fixture.url).source == .memory)
      return [afterBytes, afterText, fixture.memory.lookups.value] == [before + 1, before + 2, before + 3]
    }
  }

  @Test("values in constant use keep the index in use")
  func indexInUse() async throws {
    let fixture = try await fixture(Self.fresh)
    try await Polling.until {
      try fixture.confirm()
      let before = fixture.memory.lookups.value
      for _ in 0..<64 { #expect(fixture.cached() != nil) }
      return fixture.memory.lookups.value == before + 64 + 4
    }
  }

  @Test("a 304 renews the values that were made before it")
  func confirmed() async throws {
    let fixture = try await fixture(
      Self.fresh, .response(.notModified, fields: [.eTag: "\"1\"", .cacheControl: "max-age=100", .contentLanguage: "en"]))
    try fixture.confirm()
    fixture.base.clock.advance(by: .seconds(60))
    #expect(fixture.cached() == nil && fixture.cachedText() == nil)
    #expect(try await fixture.base.manager.load(fixture.url).source == .revalidated)
    fixture.base.clock.advance(by: .seconds(99))
    for _ in 0..<3 {
      let (bytes, text) = (fixture.cached(), fixture.cachedText())
      #expect(bytes?.response.headerFields[.contentLanguage] == "en" && text?.response.headerFields[.contentLanguage] == "en")
      #expect(bytes?.age == .seconds(99) && text?.age == .seconds(99))
      #expect(bytes?.revision == text?.revision)
    }
    try await Polling.until {
      let before = fixture.memory.lookups.value
      #expect(fixture.cachedText() != nil)
      return fixture.memory.lookups.value == before + 1
    }
    #expect(fixture.text.decoded.value == 1)
    fixture.base.clock.advance(by: .seconds(1))
    #expect(fixture.cached() == nil && fixture.cachedText() == nil)
  }

  /// A change of a resource after its index was evicted.
  enum Change: String, CaseIterable, Sendable {
    case removal, reload, purge, softPurge, purgeByPrefix, unsafeRequest, clear
  }

  @Test(
    "values whose index was evicted stay hits until their resource changes", arguments: Change.allCases,
    [false, true])
  func evicted(_ change: Change, hasBeenHit: Bool) async throws {
    var evicted: Fixture?
    try await Polling.until {
      let fixture = try await self.fixture(Self.fresh, .ok("changed", etag: "\"2\"", cacheControl: "max-age=60"))
      evicted = fixture
      if hasBeenHit { try fixture.confirm() }
      try fixture.memory.evictIndexes()
      return fixture.cached()?.text == "body" && fixture.cachedText()?.value == "BO"
    }
    let fixture = try #require(evicted)
    let (manager, url) = (fixture.base.manager, fixture.url)

    switch change {
    case .removal: try await manager.remove(url)
    case .reload: _ = try await manager.load(url, options: .policy(.reload))
    case .purge: _ = try await manager.purge(.url(url))
    case .softPurge: _ = try await manager.purge(.url(url), .soft)
    case .purgeByPrefix: _ = try await manager.purge(.prefix(fixture.base.url("/")))
    case .unsafeRequest: _ = try await manager.load(ResourceRequest(url, method: .delete))
    case .clear: try await manager.clear()
    }
    #expect(fixture.cached()?.text == (change == .reload ? "changed" : nil))
    #expect(fixture.cachedText() == nil)
  }

  @Test("a value that is inserted after the store was emptied is no hit")
  func insertedLate() async throws {
    let fixture = try await fixture(Self.fresh)
    let key = CacheKey(resource: fixture.url.absoluteString)
    try fixture.confirm()
    let entry = try #require(fixture.memory.entry(for: key))
    try await fixture.base.manager.clear()
    fixture.memory.insert(entry, for: key)
    #expect(fixture.cached() == nil)
  }

  @Test("only an observer receives the duration of a hit", arguments: [false, true])
  func duration(isObserved: Bool) async throws {
    let observer = RecordingObserver()
    let fixture = try ManagerFixture {
      ($0.store, $0.clock) = (nil, SteppingClock())
      $0.observer = isObserved ? observer : nil
    }
    fixture.network.respond(to: fixture.url, with: Self.fresh)
    _ = try await fixture.manager.load(fixture.url)
    try await Polling.until {
      let hit = try await fixture.manager.load(fixture.url)
      #expect(hit.source == .memory)
      return hit.duration == (isObserved ? .seconds(1) : .zero)
    }
    guard isObserved else { return }
    // The end of the first load's work may be reported later than the hits.
    let durations = observer.events.compactMap { event in
      if case .hit(_, .memory, let duration) = event { duration } else { nil }
    }
    #expect(durations.last == .seconds(1))
  }
}

/// A clock whose uptime advances by a second each time that it is read.
private final class SteppingClock: CacheClock {
  private let seconds = Counter()

  var now: Timestamp { Timestamp(seconds: 1_767_225_600) }

  var uptime: Duration {
    seconds.increment()
    return .seconds(seconds.value)
  }

  func sleep(for duration: Duration) async throws(CancellationError) { throw CancellationError() }
}

/// A memory store that counts its lookups, and can lose the indexes of all resources.
private final class ObservedMemory: MemoryStoring {
  let id = ComponentID.unique(ObservedMemory.self)
  let lookups = Counter()
  private let base: MemoryCache

  init(_ base: MemoryCache) { self.base = base }

  /// Removes the metadata of all responses, as an eviction policy may. The values remain.
  func evictIndexes() throws {
    let indexes = base.keys().filter { $0.transform.hasPrefix("\u{1F}") }
    try #require(!indexes.isEmpty)
    for key in indexes { base.remove(key) }
  }

  func entry(for key: CacheKey) -> MemoryEntry? {
    lookups.increment()
    return base.entry(for: key)
  }

  @discardableResult
  func insert(_ entry: MemoryEntry, for key: CacheKey) -> Bool { base.insert(entry, for: key) }
  func update(_ key: CacheKey, _ change: (MemoryEntry?) -> MemoryUpdate) -> Bool { base.update(key, change) }
  func remove(_ key: CacheKey, ifRevision: Revision?) { base.remove(key, ifRevision: ifRevision) }
  func removeAll() { base.removeAll() }
  func keys() -> [CacheKey] { base.keys() }
}
