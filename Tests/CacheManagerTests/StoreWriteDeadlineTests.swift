import CacheCore
import CacheManager
import CacheTesting
import Foundation
import HTTPTypes
import MemoryStore
import Testing

@Suite("Writes that outlive their loads")
struct StoreWriteDeadlineTests {
  private let fixture: ManagerFixture
  private let store: HeldStore

  init() throws { (fixture, store) = try ManagerFixture.held() }

  @Test(
    "a response that is purged while it is stored does not stay in memory, even if a load finds it before the late removal",
    .timeLimit(.minutes(30)))
  func purged() async throws {
    let commit = store.hold(.commit)
    fixture.network.respond(to: fixture.url, with: .ok("old", cacheControl: "max-age=600"))
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
    "the number of writes without a load is limited, and further loads wait for the store", .timeLimit(.minutes(30)))
  func bounded() async throws {
    let limit = 256
    let gate = store.hold(.commit, all: true)
    let urls = try (0...limit + 1).map { try fixture.url("/\($0)") }
    for url in urls { fixture.network.respond(to: url, with: .ok("body", cacheControl: "max-age=60")) }
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

  @Test("a load at the limit continues as soon as one write has ended", .timeLimit(.minutes(30)))
  func goesOn() async throws {
    let limit = 256
    let (manager, clock) = (fixture.manager, fixture.clock)
    let urls = try (0...limit).map { try fixture.url("/\($0)") }
    for url in urls { fixture.network.respond(to: url, with: .ok("body", cacheControl: "max-age=60")) }
    let leftBehind = store.hold(.commit, all: true)
    for url in urls[..<limit] { #expect(try await fixture.whileTimePasses { try await manager.load(url).text } == "body") }
    await leftBehind.arrived(limit)
    let own = store.hold(.commit)
    let last = Task { try await manager.load(urls[limit]).text }
    await own.arrived()
    // The watch checks the load repeatedly, long after its limit.
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

  @Test("a slow store receives the new variant of a response that a 304 names", .timeLimit(.minutes(30)))
  func filed() async throws {
    fixture.network.respond(
      to: fixture.url, with: .ok("text", etag: "\"1\"", cacheControl: "max-age=600", fields: [.vary: "Accept-Language"]),
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

  @Test("no timer is left after the manager is closed")
  func closed() async throws {
    let gate = store.hold(.commit)
    fixture.network.respond(to: fixture.url, with: .ok("body", cacheControl: "max-age=60"))
    let load = Task { try await fixture.manager.load(fixture.url).text }
    await gate.arrived()
    await fixture.clock.sleepers(1)
    gate.open()
    #expect(try await load.value == "body")

    await fixture.manager.close()

    #expect(fixture.clock.pendingSleeps == 0)
  }
}
