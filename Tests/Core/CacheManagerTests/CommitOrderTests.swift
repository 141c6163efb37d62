import CacheCore
import CacheManager
import CacheTesting
import Foundation
import HTTPTypes
import Testing

@Suite("Responses whose bodies end after a later response")
struct CommitOrderTests {
  /// A form of a load.
  enum Form: CaseIterable, Sendable { case load, file, prefetchToDisk, respond }

  /// A later request for the same resource, which does not join the older one.
  enum Later: CaseIterable, Sendable { case reload, revalidation, fileReload, respondReload }

  let folder: DownloadFolder

  init() throws { folder = try DownloadFolder() }

  private func send(_ form: Form, to fixture: ManagerFixture) async throws -> String {
    switch form {
    case .load: return try await fixture.manager.load(fixture.url).text
    case .file:
      let resource = try await fixture.manager.load(fixture.url, to: folder.file("older"))
      return try String(contentsOf: resource.file, encoding: .utf8)
    case .prefetchToDisk: return await fixture.manager.prefetch([fixture.url], into: .disk).failed.isEmpty ? "old" : "failed"
    case .respond: return try await fixture.send().text
    }
  }

  private func send(_ later: Later, to fixture: ManagerFixture) async throws -> String {
    switch later {
    case .reload: return try await fixture.manager.load(fixture.url, options: .policy(.reload)).text
    case .revalidation:
      return try await fixture.manager.load(fixture.url, options: .policy(.revalidate())).text
    case .fileReload:
      let resource = try await fixture.manager.load(fixture.url, to: folder.file("later"), options: .policy(.reload))
      return try String(contentsOf: resource.file, encoding: .utf8)
    case .respondReload: return try await fixture.send(options: .policy(.reload)).text
    }
  }

  /// The bytes of the only entry in a store.
  private func text(in store: VolatileStore) async throws -> String? {
    guard let key = store.keys.first else { return nil }
    return try await store.entry(for: key, range: nil)?.body.data.map { String(decoding: $0, as: UTF8.self) }
  }

  @Test(
    "the older response reaches its load, and does not replace the later one in memory or on disk", arguments: Form.allCases,
    Later.allCases)
  func older(_ form: Form, _ later: Later) async throws {
    for hasMemory in [true, false] {
      let gate = Gate()
      let fixture = try ManagerFixture { if !hasMemory { $0.memory = nil } }
      fixture.network.respond(
        to: fixture.url, with: .ok("old", cacheControl: "max-age=600").bodyHeld(by: gate),
        .ok("new", cacheControl: "max-age=600"))
      let older = Task { try await send(form, to: fixture) }
      await gate.arrived()
      fixture.clock.advance(by: .milliseconds(10))

      #expect(try await send(later, to: fixture) == "new")
      gate.open()

      #expect(try await older.value == "old")
      #expect(try await fixture.manager.load(fixture.url, options: .policy(.cacheOnly)).text == "new")
      fixture.restart()
      #expect(try await fixture.manager.load(fixture.url, options: .policy(.cacheOnly)).text == "new")
      #expect(fixture.network.requests.count == 2)
    }
  }

  @Test("a response that arrived at the same time as another one is stored after it if its head was read later")
  func sameTime() async throws {
    let gate = Gate()
    let fixture = try ManagerFixture()
    fixture.network.respond(
      to: fixture.url, with: .ok("old", cacheControl: "max-age=600").bodyHeld(by: gate), .ok("new", cacheControl: "max-age=600"))
    let older = Task { try await fixture.manager.load(fixture.url).text }
    await gate.arrived()
    _ = try await fixture.manager.load(fixture.url, options: .policy(.reload))
    gate.open()
    #expect(try await older.value == "old")
    #expect(try await fixture.manager.load(fixture.url).text == "new")
    #expect(try await text(in: fixture.disk) == "new")
  }

  @Test("a later response waits for the commit of the older one, and then replaces it", .timeLimit(.minutes(30)))
  func commits() async throws {
    let (fixture, store) = try ManagerFixture.held()
    fixture.network.respond(
      to: fixture.url, with: .ok("old", cacheControl: "max-age=600"), .ok("new", cacheControl: "max-age=600"))
    let commit = store.hold(.commit)
    let older = Task { try await fixture.manager.load(fixture.url).text }
    await commit.arrived()
    fixture.clock.advance(by: .milliseconds(10))
    let later = Task { try await fixture.manager.load(fixture.url, options: .policy(.reload)).text }

    #expect(try await fixture.whileTimePasses { try await [older.value, later.value] } == ["old", "new"])
    #expect(try await fixture.manager.load(fixture.url).text == "new")
    commit.open()
    await fixture.manager.close()

    #expect(try await text(in: store.base) == "new")
  }

  @Test("an older 304 does not replace the metadata of a later one")
  func confirmations() async throws {
    let (fixture, store) = try ManagerFixture.held()
    fixture.network.respond(
      to: fixture.url, with: .ok("text", etag: "\"1\"", cacheControl: "max-age=1"),
      .notModified(etag: "\"1\"", cacheControl: "max-age=60"), .notModified(etag: "\"1\"", cacheControl: "max-age=6000"))
    _ = try await fixture.manager.load(fixture.url)
    fixture.clock.advance(by: .seconds(5))
    fixture.restart()
    let open = store.hold(.open)
    let older = Task { try await fixture.manager.load(fixture.url).source }
    // The older 304 has arrived, and the body is read from the store.
    await open.arrived()
    fixture.clock.advance(by: .milliseconds(10))
    // A load with another policy does not join the older one.
    #expect(try await fixture.manager.load(fixture.url, options: .policy(.revalidate())).source == .revalidated)
    open.open()
    #expect(try await older.value == .revalidated)

    fixture.clock.advance(by: .seconds(600))
    #expect(try await fixture.manager.load(fixture.url).source == .memory)
    fixture.restart()
    #expect(try await fixture.manager.load(fixture.url).source == .disk)
  }

  @Test("a response that arrives after the caller has stored one is stored, even while an older body still arrives")
  func afterStoring() async throws {
    let gate = Gate()
    let fixture = try ManagerFixture()
    fixture.network.respond(
      to: fixture.url, with: .ok("old", cacheControl: "max-age=600").bodyHeld(by: gate), .ok("new", cacheControl: "max-age=600"))
    let older = Task { try await fixture.manager.load(fixture.url).text }
    await gate.arrived()
    fixture.clock.advance(by: .milliseconds(10))
    try await fixture.manager.store(Data("own".utf8), for: fixture.url)
    fixture.clock.advance(by: .milliseconds(10))

    #expect(try await fixture.manager.load(fixture.url, options: .policy(.reload)).text == "new")
    #expect(try await text(in: fixture.disk) == "new")
    gate.open()
    #expect(try await older.value == "old")
    #expect(try await text(in: fixture.disk) == "new")
  }

  @Test("a response is stored although the clock was set back since the earlier one")
  func clockSetBack() async throws {
    let fixture = try ManagerFixture()
    fixture.network.respond(
      to: fixture.url, with: .ok("old", cacheControl: "max-age=600"), .ok("new", cacheControl: "max-age=600"))
    _ = try await fixture.manager.load(fixture.url)
    fixture.clock.setNow(fixture.clock.now - .seconds(3_600))
    _ = try await fixture.manager.load(fixture.url, options: .policy(.reload))
    fixture.restart()
    #expect(try await fixture.manager.load(fixture.url, options: .policy(.cacheOnly)).text == "new")
  }

  @Test("a response that was read from disk before a later one was stored there is not put into memory")
  func promotion() async throws {
    let (fixture, store) = try ManagerFixture.held { $0.waitForStores() }
    fixture.network.respond(
      to: fixture.url, with: .ok("old", cacheControl: "max-age=600"), .ok("new", cacheControl: "max-age=600"))
    _ = try await fixture.manager.load(fixture.url)
    fixture.restart()
    fixture.clock.advance(by: .milliseconds(10))
    let open = store.hold(.open)
    let older = Task { try await fixture.manager.load(fixture.url).text }
    await open.arrived()

    #expect(try await send(.fileReload, to: fixture) == "new")
    open.open()

    #expect(try await older.value == "old")
    #expect(try await fixture.manager.load(fixture.url).text == "new")
  }

  @Test("a response is not left in memory if a slow lookup finds a later one of another process", .timeLimit(.minutes(30)))
  func laterOfAnotherProcess() async throws {
    let (fixture, store) = try ManagerFixture.held()
    let (manager, url) = (fixture.manager, fixture.url)
    let other = try ManagerFixture { [clock = fixture.clock] in
      $0.clock = clock
      $0.store = store.base
    }
    let body = Gate()
    fixture.network.respond(to: url, with: .ok("old", cacheControl: "max-age=600").bodyHeld(by: body))
    other.network.respond(to: url, with: .ok("new", cacheControl: "max-age=600"))
    let older = Task { try await manager.load(url).text }
    await body.arrived()
    fixture.clock.advance(by: .seconds(2))
    #expect(try await other.manager.load(url).text == "new")

    let look = store.hold(.look)
    body.open()
    await look.arrived()
    // The load stops waiting for the store, and its response is in memory.
    #expect(try await fixture.whileTimePasses { try await older.value } == "old")
    #expect(try await manager.load(url, options: .policy(.cacheOnly)).text == "old")
    look.open()

    try await Polling.until { manager.cachedInMemory(ResourceRequest(url), as: .bytes) == nil }
    #expect(try await manager.load(url, options: .policy(.cacheOnly)).text == "new")
  }

  @Test("a response whose writer the store returns late does not replace one that was stored meanwhile")
  func lateWriter() async throws {
    let (fixture, store) = try ManagerFixture.held {
      $0.waitForStores()
      $0.memory = nil
    }
    fixture.network.respond(
      to: fixture.url, with: .ok("old", cacheControl: "max-age=600"), .ok("new", cacheControl: "max-age=600"))
    let make = store.hold(.make)
    let older = Task { try await fixture.manager.load(fixture.url).text }
    await make.arrived()
    fixture.clock.advance(by: .milliseconds(10))
    #expect(try await send(.revalidation, to: fixture) == "new")
    make.open()

    #expect(try await older.value == "old")
    #expect(try await text(in: store.base) == "new")
  }
}
