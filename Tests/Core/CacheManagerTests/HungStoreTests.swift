import CacheCore
import CacheManager
import CacheTesting
import Foundation
import HTTPTypes
import Testing

@Suite("A durable store that hangs")
struct HungStoreTests {
  /// A form of a load.
  enum Form: CaseIterable, Sendable { case load, file, respond }

  let fixture: ManagerFixture
  let store: HeldStore
  let folder: DownloadFolder

  init() throws {
    (fixture, store) = try ManagerFixture.held { $0.storeReadTimeout = .milliseconds(100) }
    folder = try DownloadFolder()
    fixture.network.serve(fixture.url) { _ in .ok("body", cacheControl: "max-age=60") }
  }

  private func send(_ form: Form, _ path: String = "/image.png") async throws -> String {
    switch form {
    case .load: return try await fixture.manager.load(try fixture.url(path)).text
    case .file:
      let resource = try await fixture.manager.load(try fixture.url(path), to: folder.file())
      return try String(contentsOf: resource.file, encoding: .utf8)
    case .respond: return try await fixture.send(path: path).text
    }
  }

  /// The codes of the errors of the store that the observer received.
  private var failures: (reads: Set<CacheError.Code>, writes: Set<CacheError.Code>) {
    fixture.observer.events.reduce(into: ([], [])) { failures, event in
      switch event {
      case .readFailed(_, let error): failures.reads.insert(error.code)
      case .storeFailed(_, let error): failures.writes.insert(error.code)
      default: break
      }
    }
  }

  @Test("a load gets the origin's response, and closing ends", .timeLimit(.minutes(30)), arguments: Form.allCases)
  func lookup(_ form: Form) async throws {
    let gate = store.hang()

    #expect(try await fixture.whileTimePasses { try await send(form) } == "body")

    #expect(failures.reads == [.overloaded])
    #expect(fixture.network.requests.count == 1)
    let manager = fixture.manager
    try await fixture.whileTimePasses { await manager.close() }
    gate.open()
  }

  @Test("a hit whose body cannot be read becomes a request", .timeLimit(.minutes(30)), arguments: Form.allCases)
  func body(_ form: Form) async throws {
    _ = try await fixture.manager.load(fixture.url)
    fixture.restart()
    let open = store.hold(.open, all: true)

    #expect(try await fixture.whileTimePasses { try await send(form) } == "body")

    #expect(failures.reads == [.overloaded])
    #expect(fixture.network.requests.count == 2)
    open.open()
  }

  @Test("a cancelled lookup ends at once", arguments: Form.allCases)
  func cancellation(_ form: Form) async throws {
    let gate = store.hang()
    let load = Task { try await send(form) }
    await gate.arrived()

    load.cancel()

    let error = await #expect(throws: CacheError.self) { try await load.value }
    #expect(error?.isCancellation == true)
    #expect(fixture.network.requests.isEmpty)
    // Nothing waits for the lookup any more.
    await fixture.manager.close()
    gate.open()
  }

  @Test("while too many reads continue without a load, further reads fail at once", .timeLimit(.minutes(30)))
  func bounded() async throws {
    let limit = 256
    for number in 0...limit {
      fixture.network.respond(to: try fixture.url("/\(number)"), with: .ok("body", cacheControl: "max-age=60"))
    }
    let gate = store.hang()
    let loads = (0..<limit).map { number in Task { try await send(.load, "/\(number)") } }
    for load in loads { #expect(try await fixture.whileTimePasses { try await load.value } == "body") }
    let before = gate.arrivals

    #expect(try await send(.load, "/\(limit)") == "body")
    #expect(try await send(.respond, "/\(limit)") == "body")

    #expect(gate.arrivals == before)
    #expect(failures.reads == [.overloaded] && failures.writes == [.overloaded])
    gate.open()
    // The store is used again as soon as earlier calls have ended.
    try await Polling.until {
      _ = try await fixture.manager.load(fixture.url, options: .policy(.reload))
      return store.base.keys.contains { $0.resource == fixture.url.absoluteString }
    }
    await fixture.manager.close()
  }

  @Test("a load into the store alone fails", .timeLimit(.minutes(30)))
  func storing() async throws {
    let gate = store.hang()
    let (manager, url) = (fixture.manager, fixture.url)
    let report = try await fixture.whileTimePasses { await manager.prefetch([url], into: .disk) }
    #expect(report.failed.map(\.error.code) == [.overloaded])
    try await fixture.whileTimePasses { await manager.close() }
    gate.open()
  }

  @Test("an unsafe request ends, although its removals hang", .timeLimit(.minutes(30)))
  func removals() async throws {
    _ = try await fixture.manager.load(fixture.url)
    fixture.network.serve(fixture.url) { _ in .response(.noContent) }
    let gate = store.hang()
    #expect(try await fixture.whileTimePasses { try await fixture.send([:], .put, sending: "x").status } == 204)
    #expect(failures.writes == [.overloaded])
    let (manager, url) = (fixture.manager, fixture.url)
    #expect(try await fixture.whileTimePasses { try await manager.lookup(url) } == .miss)
    gate.open()
  }

  @Test("the removals of an unsafe request share one time limit", .timeLimit(.minutes(30)))
  func removalsTogether() async throws {
    let locations: HTTPFields = [.location: "/created", .contentLocation: "/current"]
    for path in ["/created", "/current"] {
      fixture.network.respond(to: try fixture.url(path), with: .ok("body", cacheControl: "max-age=60"))
      _ = try await send(.load, path)
    }
    _ = try await send(.load)
    #expect(store.base.keys.count == 3)
    fixture.network.serve(fixture.url) { _ in .response(.created, fields: locations) }
    let gate = store.hang()
    let start = fixture.clock.uptime
    #expect(try await fixture.whileTimePasses { try await fixture.send([:], .put, sending: "x").status } == 201)
    // The limit is 10 s, and a few turns of the clock pass before the removals begin.
    #expect(fixture.clock.uptime - start < .seconds(15))
    #expect(gate.held >= 3)
    gate.open()
  }

  @Test("closing with a time limit reports the writes that have not ended", .timeLimit(.minutes(30)))
  func closing() async throws {
    let commit = store.hold(.commit)
    #expect(try await fixture.whileTimePasses { try await send(.load) } == "body")
    let manager = fixture.manager
    #expect(try await fixture.whileTimePasses { await manager.close(within: .seconds(600)) } == false)
    commit.open()
  }
}
