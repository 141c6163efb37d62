import CacheCore
import CacheManager
import CacheTesting
import Foundation
import HTTPTypes
import MemoryStore
import Testing

@Suite("What a durable store does behind a load's back")
struct StorePatienceTests {
  private let fixture: ManagerFixture
  private let store: HeldStore

  init() throws { (fixture, store) = try ManagerFixture.held() }

  @Test(
    "what was purged while it was stored does not stay in memory, where its removal is late and somebody finds it before",
    .timeLimit(.minutes(30)))
  func purged() async throws {
    let commit = store.hold(.commit)
    fixture.network.answer(fixture.url, .ok("old", cacheControl: "max-age=600"))
    let first = Task { try await fixture.manager.load(fixture.url).text }
    await commit.arrived()
    try await fixture.manager.purge(.url(fixture.url))
    let removal = store.hold(.removal)
    commit.open()
    await removal.arrived()
    #expect(try await fixture.whileTimePasses { try await first.value } == "old")
    try await Turns.until {
      if fixture.clock.pendingSleeps > 0 { fixture.clock.advance(by: .milliseconds(50)) }
      return fixture.clock.pendingSleeps == 0
    }
    for _ in 0..<100 { await Task.yield() }

    #expect(try await fixture.manager.load(fixture.url).source == .disk)
    removal.open()
    await fixture.manager.close()

    #expect(store.base.keys.isEmpty)
    #expect(fixture.memory.count == 0)
  }

  @Test(
    "so much is left behind and no more: then loads wait for the store, until there is room again", .timeLimit(.minutes(30)))
  func bounded() async throws {
    let limit = 256
    let gate = store.hold(.commit, all: true)
    let urls = try (0...limit + 1).map { try fixture.url("/\($0)") }
    for url in urls { fixture.network.answer(url, .ok("body", cacheControl: "max-age=60")) }
    let manager = fixture.manager
    let done = Counter()
    let loads = urls[...limit].map { url in
      Task {
        defer { done.increment() }
        return try await manager.load(url).text
      }
    }
    await gate.arrived(limit + 1)
    try await Turns.until {
      if fixture.clock.pendingSleeps > 0 { fixture.clock.advance(by: .milliseconds(50)) }
      return done.value >= limit
    }
    for _ in 0..<20 {
      fixture.clock.advance(by: .milliseconds(50))
      for _ in 0..<100 { await Task.yield() }
    }
    #expect(done.value == limit)
    gate.open()
    for load in loads { #expect(try await load.value == "body") }
    try await Turns.until { store.base.keys.count == limit + 1 }

    let again = store.hold(.commit)
    #expect(try await fixture.whileTimePasses { try await manager.load(urls[limit + 1]).text } == "body")
    again.open()
    await manager.close()
    #expect(store.base.keys.count == urls.count)
  }

  @Test("who finds as much left behind as may be goes on as soon as a piece of it is done", .timeLimit(.minutes(30)))
  func goesOn() async throws {
    let limit = 256
    let (manager, clock) = (fixture.manager, fixture.clock)
    let urls = try (0...limit).map { try fixture.url("/\($0)") }
    for url in urls { fixture.network.answer(url, .ok("body", cacheControl: "max-age=60")) }
    let leftBehind = store.hold(.commit, all: true)
    for url in urls[..<limit] { #expect(try await fixture.whileTimePasses { try await manager.load(url).text } == "body") }
    await leftBehind.arrived(limit)
    let own = store.hold(.commit)
    let last = Task { try await manager.load(urls[limit]).text }
    await own.arrived()
    // It is looked at again and again, long after its time.
    for _ in 0..<5 {
      try await Turns.until { clock.pendingSleeps > 0 }
      clock.advance(by: .milliseconds(50))
    }

    leftBehind.letThrough()

    #expect(try await fixture.whileTimePasses { try await last.value } == "body")
    #expect(own.held == 1)
    own.open()
    leftBehind.open()
    await manager.close()
    #expect(store.base.keys.count == urls.count)
  }

  @Test("a stored answer that a 304 names is filed under its new variant there, where that takes long", .timeLimit(.minutes(30)))
  func filed() async throws {
    fixture.network.answer(
      fixture.url, .ok("text", etag: "\"1\"", cacheControl: "max-age=600", fields: [.vary: "Accept-Language"]),
      .notModified(etag: "\"1\"", cacheControl: "max-age=600"))
    let (manager, url) = (fixture.manager, fixture.url)
    _ = try await manager.load(ResourceRequest(url, headerFields: [.acceptLanguage: "de"]))
    let gate = store.hold(.commit)

    let named = try await fixture.whileTimePasses {
      try await manager.load(ResourceRequest(url, headerFields: [.acceptLanguage: "nl"]))
    }

    #expect(named.source == .revalidated && named.text == "text")
    #expect(gate.held == 1)
    gate.open()
    await manager.close()
    #expect(store.base.keys.count == 2)
  }

  @Test("nothing waits for time any more once the manager is closed")
  func closed() async throws {
    let gate = store.hold(.commit)
    fixture.network.answer(fixture.url, .ok("body", cacheControl: "max-age=60"))
    let load = Task { try await fixture.manager.load(fixture.url).text }
    await gate.arrived()
    await fixture.clock.sleepers(1)
    gate.open()
    #expect(try await load.value == "body")

    await fixture.manager.close()

    #expect(fixture.clock.pendingSleeps == 0)
  }
}
