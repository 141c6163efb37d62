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
    let list = store.hold(.list)
    let purge = Task { try await fixture.manager.purge(.url(fixture.url)) }
    await list.arrived()
    list.open()
    let removal = store.hold(.removal)
    commit.open()
    await removal.arrived()
    #expect(try await fixture.whileTimePasses { try await first.value } == "old")
    try await Polling.until {
      if fixture.clock.pendingSleeps > 0 { fixture.clock.advance(by: .milliseconds(50)) }
      return fixture.clock.pendingSleeps == 0
    }
    for _ in 0..<100 { await Task.yield() }

    // The purge waits for the late removal. A load that begins before the purge has ended may find the response.
    #expect(try await fixture.manager.load(fixture.url).source == .disk)
    removal.open()
    _ = try await purge.value
    #expect(try await fixture.manager.lookup(fixture.url) == .miss)
    await fixture.manager.close()

    #expect(store.base.keys.isEmpty)
    #expect(fixture.memory.count == 0)
  }

  @Test(
    "while too many writes continue without a load, responses are not stored, and loads do not wait", .timeLimit(.minutes(30)))
  func bounded() async throws {
    let limit = 256
    let gate = store.hold(.commit, all: true)
    let urls = try (0...limit + 1).map { try fixture.url("/\($0)") }
    for url in urls { fixture.network.respond(to: url, with: .ok("body", cacheControl: "max-age=60")) }
    let manager = fixture.manager
    let loads = urls[..<limit].map { url in Task { try await manager.load(url).text } }
    await gate.arrived(limit)
    for load in loads { #expect(try await fixture.whileTimePasses { try await load.value } == "body") }

    #expect(try await manager.load(urls[limit]).text == "body")
    #expect(gate.arrivals == limit)
    let refused = fixture.observer.events.compactMap { event -> CacheError.Code? in
      if case .storeFailed(_, let error) = event { error.code } else { nil }
    }
    #expect(refused == [.overloaded])
    #expect(try await manager.load(urls[limit]).source == .memory)

    gate.open()
    try await Polling.until { store.base.keys.count == limit }
    try await Polling.until {
      _ = try await manager.load(urls[limit], options: .policy(.memoryElseReload))
      fixture.network.respond(to: urls[limit + 1], with: .ok("body", cacheControl: "max-age=60"))
      _ = try await manager.load(urls[limit + 1], options: .policy(.reload))
      return store.base.keys.count == limit + 1
    }
    await manager.close()
  }

  /// Loads as many resources as may be written without a load. Their commits wait at the gate, and the store is full.
  private func fill(_ commits: Gate, including url: URL? = nil) async throws {
    var urls = try (0..<256).map { try fixture.url("/\($0)") }
    for url in urls { fixture.network.respond(to: url, with: .ok("body", cacheControl: "max-age=600")) }
    if let url { urls[0] = url }
    let manager = fixture.manager
    let before = commits.arrivals
    let loads = urls.map { url in Task { try await manager.load(url).text } }
    await commits.arrived(before + urls.count)
    for load in loads { _ = try await fixture.whileTimePasses { try await load.value } }
  }

  private func reload() async throws -> String {
    let (manager, url) = (fixture.manager, fixture.url)
    return try await fixture.whileTimePasses { try await manager.load(url, options: .policy(.reload)).text }
  }

  @Test(
    "a late commit does not leave an older response in the store, if the later one went to memory alone",
    .timeLimit(.minutes(30)))
  func lateCommit() async throws {
    let commits = store.hold(.commit, all: true)
    fixture.network.respond(
      to: fixture.url, with: .ok("old", cacheControl: "max-age=600"), .ok("new", cacheControl: "max-age=600"))
    try await fill(commits, including: fixture.url)

    #expect(try await reload() == "new")
    #expect(try await fixture.manager.load(fixture.url).text == "new")
    commits.open()
    await fixture.manager.close()

    #expect(store.base.keys.count == 255 && !store.base.keys.contains { $0.resource == fixture.url.absoluteString })
  }

  @Test("a late removal does not remove a response that arrived after it began", .timeLimit(.minutes(30)))
  func lateRemoval() async throws {
    fixture.network.respond(
      to: fixture.url, with: .ok("old", cacheControl: "max-age=600"), .ok("new", cacheControl: "max-age=600"),
      .ok("newest", cacheControl: "max-age=600"))
    _ = try await fixture.manager.load(fixture.url)
    let commits = store.hold(.commit, all: true)
    try await fill(commits)
    let removal = store.hold(.removal)
    #expect(try await reload() == "new")
    #expect(removal.held == 1)
    commits.open()
    let other = try fixture.url("/other")
    fixture.network.serve(other) { _ in .ok("body", cacheControl: "max-age=600") }
    // The store is not full any more as soon as commits have ended.
    try await Polling.until {
      _ = try await fixture.manager.load(other, options: .policy(.reload))
      return store.base.keys.contains { $0.resource == other.absoluteString }
    }

    #expect(try await reload() == "newest")
    removal.open()
    await fixture.manager.close()

    let kept = store.base.keys.first { $0.resource == fixture.url.absoluteString }
    let entry = try await store.base.entry(for: #require(kept), range: nil)
    #expect(try await entry?.body.collect(limit: 100) == Data("newest".utf8))
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
