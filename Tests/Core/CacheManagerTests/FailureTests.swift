import CacheCore
import CacheManager
import CacheTesting
import Foundation
import HTTPTypes
import MemoryStore
import Testing

@Suite("Failures of loads")
struct FailureTests {
  @Test(
    "a status that is not accepted is an error with that status, and the stored response remains",
    arguments: [404, 410, 500, 503])
  func status(_ code: Int) async throws {
    let fixture = try ManagerFixture()
    fixture.network.respond(to: fixture.url, with: .ok("kept", etag: "\"1\""), .response(.init(code: code)))
    _ = try await fixture.manager.load(fixture.url)

    let error = try await fixture.failure(fixture.url)

    #expect(error.code == .unacceptableStatus && error.status == code && error.url == fixture.url.absoluteString)
    #expect(try await fixture.manager.load(fixture.url, options: .policy(.cacheOnly)).text == "kept")
  }

  @Test(
    "the error of a status includes its reason phrase, even if the engine reports none",
    arguments: [(404, "404 Not Found"), (503, "503 Service Unavailable"), (599, "599")])
  func phrase(_ code: Int, _ words: String) async throws {
    let fixture = try ManagerFixture()
    fixture.network.respond(to: fixture.url, with: .response(HTTPResponse.Status(code: code, reasonPhrase: "")))

    #expect(try await fixture.failure(fixture.url).reason == "the server answered \(words)")
  }

  @Test("a body that is cut short is an error, and nothing of it is stored")
  func truncated() async throws {
    let fixture = try ManagerFixture()
    fixture.network.respond(
      to: fixture.url, with: .ok(Data(count: 100_000), cacheControl: "max-age=60").cut(after: 70_000).chunked(by: 10_000))

    let error = try await fixture.failure(fixture.url)

    #expect(error.code == .truncatedBody)
    #expect(fixture.disk.keys.isEmpty && fixture.memory.count == 0)
  }

  @Test("if a replacement is cut short, the stored response remains and is shown")
  func truncatedReplacement() async throws {
    let fixture = try ManagerFixture()
    fixture.network.respond(
      to: fixture.url, with: .ok("old", etag: "\"1\""), .ok(Data(count: 1_000), etag: "\"2\"").cut(after: 10))
    _ = try await fixture.manager.load(fixture.url)

    let shown = try await fixture.manager.load(fixture.url)

    #expect(shown.text == "old" && shown.validation == .failed)
  }

  @Test("a disk that fails in every call never fails a load, and is reported")
  func brokenDisk() async throws {
    let fixture = try ManagerFixture()
    fixture.disk.failure = CacheError(.diskFull, reason: "no space left", path: "/cache")
    fixture.network.respond(to: fixture.url, with: .ok("bytes", etag: "\"1\""), .notModified())

    let first = try await fixture.manager.load(fixture.url)
    let second = try await fixture.manager.load(fixture.url)

    #expect(first.text == "bytes" && second.source == .revalidated)
    let reports = fixture.observer.events.compactMap { event -> CacheError.Code? in
      switch event {
      case .storeFailed(_, let error), .readFailed(_, let error): error.code
      default: nil
      }
    }
    #expect(!reports.isEmpty && reports.allSatisfy { $0 == .diskFull })
  }

  @Test("a damaged entry is a miss, and one unconditional request replaces it")
  func damagedEntry() async throws {
    let fixture = try ManagerFixture()
    fixture.network.respond(
      to: fixture.url, with: .ok("bytes", etag: "\"1\"", cacheControl: "max-age=60"),
      .ok("again", etag: "\"1\"", cacheControl: "max-age=60"))
    _ = try await fixture.manager.load(fixture.url)
    fixture.restart()
    for key in fixture.disk.keys { fixture.disk.damage(key) }

    let healed = try await fixture.manager.load(fixture.url)
    fixture.restart()

    #expect(healed.text == "again" && healed.source == .network)
    #expect(fixture.network.conditional == 0)
    #expect(try await fixture.manager.load(fixture.url).source == .disk)
  }

  @Test("a 304 for a damaged stored body leads to one unconditional request")
  func notModifiedWithoutBody() async throws {
    let fixture = try ManagerFixture()
    fixture.network.respond(to: fixture.url, with: .ok("bytes", etag: "\"1\""), .notModified(), .ok("again", etag: "\"1\""))
    _ = try await fixture.manager.load(fixture.url)
    fixture.restart()
    for key in fixture.disk.keys { fixture.disk.damage(key) }

    let healed = try await fixture.manager.load(fixture.url)

    #expect(healed.text == "again" && healed.source == .network)
    #expect(fixture.network.requests.map { $0.headerFields[.ifNoneMatch] } == [nil, "\"1\"", nil])
  }

  @Test("a 304 to a request without a condition is an error and not an empty body")
  func unrequestedNotModified() async throws {
    let fixture = try ManagerFixture()
    fixture.network.respond(to: fixture.url, with: .notModified(), .notModified())

    #expect(try await fixture.failure(fixture.url).code == .malformedResponse)
    #expect(fixture.disk.keys.isEmpty)
  }

  @Test("instead of a 304 that cannot be used, the stale response is served")
  func unusableNotModified() async throws {
    let fixture = try ManagerFixture()
    try await fixture.storeStale()
    fixture.network.respond(to: fixture.url, with: .notModified(etag: "\"9\""), .notModified(etag: "\"9\""))

    let shown = try await fixture.manager.load(fixture.url)

    #expect(shown.text == "old" && shown.fallbackReason?.code == .malformedResponse)
    #expect(fixture.network.requests.count == 3)
  }

  @Test("a body that exceeds the limit is rejected by its announced length or while it arrives", arguments: [true, false])
  func tooLarge(announced: Bool) async throws {
    let fixture = try ManagerFixture { $0.maximumBodySize = 1_000 }
    let response = ScriptedResponse.ok(Data(count: 5_000)).chunked(by: 100)
    fixture.network.respond(to: fixture.url, with: announced ? response : response.withoutLength())

    #expect(try await fixture.failure(fixture.url).code == .bodyTooLarge)
    #expect(fixture.disk.keys.isEmpty && fixture.network.cancelledBodies == 1)
  }

  @Test(
    "a URL that cannot be loaded is an error before any request is sent",
    arguments: ["https://", "image.png", "https://host:99999/"])
  func invalidURL(_ text: String) async throws {
    let error = #expect(throws: CacheError.self) { _ = try ResourceRequest(text) }
    #expect(error?.code == .invalidURL && error?.url == text)
  }

  @Test("the error of an unsupported scheme names the scheme")
  func unknownScheme() async throws {
    let fixture = try ManagerFixture()
    let url = try #require(URL(string: "ftp://example.com/a"))

    #expect(try await fixture.failure(url).code == .unsupportedScheme)
    #expect(fixture.network.requests.isEmpty)
  }

  @Test("a short unwanted body that does not arrive is cancelled soon, and no load waits for it")
  func unwantedBody() async throws {
    let fixture = try ManagerFixture()
    let gate = Gate()
    fixture.network.respond(
      to: fixture.url, with: .response(.notFound, fields: [.cacheControl: "no-store"], body: Data("none".utf8)).bodyHeld(by: gate)
    )

    #expect(try await fixture.failure(fixture.url).status == 404)
    await fixture.clock.sleepers(1)
    #expect(fixture.network.cancelledBodies == 0)
    fixture.clock.advance(by: .seconds(5))

    try await Polling.until { fixture.network.cancelledBodies > 0 }
  }

  @Test("the deadline of a load ends it with a timeout and stops the transfer")
  func deadline() async throws {
    let fixture = try ManagerFixture()
    let gate = Gate()
    fixture.network.respond(to: fixture.url, with: .ok("late").held(by: gate))
    let options = RequestOptions { $0.timeout = .seconds(5) }

    async let error = fixture.failure(fixture.url, options)
    await gate.arrived()
    await fixture.clock.sleepers(1)
    fixture.clock.advance(by: .seconds(5))

    #expect(try await error.code == .timedOut)
    gate.open()
    await fixture.manager.close()
    #expect(fixture.disk.keys.isEmpty)
  }
}
