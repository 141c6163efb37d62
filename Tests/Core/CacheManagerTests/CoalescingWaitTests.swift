import CacheCore
import CacheManager
import CacheTesting
import ETagValidation
import Foundation
import HTTPTypes
import Testing

/// The layers that store the response. They decide how waiting requests receive it.
enum StorageKind: CaseIterable, Sendable { case everywhere, memory, disk }

extension ManagerFixture {
  init(_ kind: StorageKind, _ change: (inout ResourceManager.Configuration) -> Void = { _ in }) throws {
    try self.init {
      if kind == .memory { $0.store = nil }
      if kind == .disk { $0.memory = nil }
      change(&$0)
    }
  }

  static let collapsed = "Etagere;fwd=uri-miss;ttl=60;collapsed"
}

@Suite("Request coalescing in respond(to:)")
struct CoalescingWaitTests {
  @Test(
    "forty requests for a resource that is not stored make one request to the origin", arguments: StorageKind.allCases,
    [true, false])
  func missing(_ kind: StorageKind, statesLength: Bool) async throws {
    let fixture = try ManagerFixture(kind)
    let gate = Gate()
    let text = String(repeating: "0123456789", count: 30)
    let response = ScriptedResponse.ok(text, cacheControl: "max-age=60").chunked(by: 100).held(by: gate)
    fixture.network.respond(to: fixture.url, with: statesLength ? response : response.withoutLength())

    let exchanges = fixture.send(times: 40)
    await fixture.clock.sleepers(39)
    gate.open()

    let results = try await exchanges.value
    #expect(results.allSatisfy { $0.status == 200 && $0.text == text })
    #expect(results.filter { $0.cacheField == ManagerFixture.collapsed && $0.fields[.age] == "0" }.count == 39)
    #expect(results.filter { $0.cache == "Etagere;fwd=uri-miss;ttl=60;stored" }.count == 1)
    try fixture.network.verify()
    #expect(fixture.network.requests.count == 1 && fixture.clock.pendingSleeps == 0)
    #expect(try await fixture.send().cache == "Etagere;hit;ttl=60")
  }

  @Test("forty requests for a stale response make one request, and conditions and HEAD use the confirmed response")
  func stale() async throws {
    let fixture = try ManagerFixture()
    let gate = Gate()
    fixture.network.respond(
      to: fixture.url, with: .ok("old", etag: "\"1\"", cacheControl: "max-age=1"),
      .notModified(cacheControl: "max-age=60").held(by: gate))
    _ = try await fixture.send()
    fixture.clock.advance(by: .seconds(5))

    let first = Task { try await fixture.send([.ifNoneMatch: "\"1\""]) }
    await gate.arrived()
    let exchanges = fixture.send(times: 38) { $0 < 19 ? [.ifNoneMatch: "\"1\""] : [:] }
    let head = Task { try await fixture.send([:], .head) }
    await fixture.clock.sleepers(39)
    gate.open()

    let results = try await exchanges.value
    #expect(try await first.value.cache == "Etagere;fwd=stale;fwd-status=304;ttl=60")
    #expect(results.filter { $0.status == 304 && $0.text.isEmpty }.count == 19)
    #expect(results.filter { $0.status == 200 && $0.text == "old" }.count == 19)
    #expect(results.allSatisfy { $0.cache == "Etagere;fwd=stale;fwd-status=304;ttl=60;collapsed" })
    #expect(try await head.value.status == 200)
    #expect(fixture.network.requests.count == 2)
  }

  @Test("forty requests for a stale response that has changed get the new response")
  func changed() async throws {
    let fixture = try ManagerFixture()
    let gate = Gate()
    fixture.network.respond(
      to: fixture.url, with: .ok("old", etag: "\"1\"", cacheControl: "max-age=1"),
      .ok("new", etag: "\"2\"", cacheControl: "max-age=60").held(by: gate))
    _ = try await fixture.send()
    fixture.clock.advance(by: .seconds(5))

    let exchanges = fixture.send(times: 40)
    await fixture.clock.sleepers(39)
    gate.open()

    #expect(try await exchanges.value.allSatisfy { $0.text == "new" })
    #expect(fixture.network.requests.count == 2)
  }

  @Test(
    "if a response is for one request alone, all other requests are sent at once",
    arguments: [
      ["Cache-Control": "no-store"], ["Cache-Control": "private, max-age=60"], ["Cache-Control": "private, no-cache"],
      ["Cache-Control": "max-age=60", "Vary": "*"], ["Set-Cookie": "session=1"],
      ["Cache-Control": "no-cache", "Set-Cookie": "session=1"],
    ])
  func unshared(_ lines: [String: String]) async throws {
    let fixture = try ManagerFixture { $0.validator = ETagValidator(mode: .shared) }
    let (first, others) = (Gate(), Gate())
    let fields = lines.reduce(into: HTTPFields()) { $0.append(contentsOf: HTTPFields.field($1.key, $1.value)) }
    fixture.network.respond(to: fixture.url, with: .ok("mine", fields: fields).held(by: first))
    fixture.network.serve(fixture.url) { _ in .ok("mine", fields: fields).held(by: others) }

    let exchanges = fixture.send(times: 40)
    await fixture.clock.sleepers(39)
    first.open()
    // All requests were sent, and none has a response.
    try await Polling.until { others.arrivals == 39 }
    let later = fixture.send(times: 5)
    // Later requests do not wait for a response that could not be shared a moment ago.
    try await Polling.until { others.arrivals == 44 }
    others.open()

    let results = try await exchanges.value + later.value
    #expect(results.count == 45 && results.allSatisfy { $0.text == "mine" && !$0.cache.contains("collapsed") })
  }

  @Test("requests wait for each other again as soon as a response is stored")
  func unmarked() async throws {
    let fixture = try ManagerFixture()
    let gate = Gate()
    fixture.network.respond(
      to: fixture.url, with: .ok("mine", cacheControl: "no-store"), .ok("all's", cacheControl: "max-age=1"),
      .ok("all's", cacheControl: "max-age=60").held(by: gate))
    for _ in 0..<2 { _ = try await fixture.send() }
    fixture.clock.advance(by: .seconds(2))
    let exchanges = fixture.send(times: 5)
    await fixture.clock.sleepers(4)
    gate.open()
    #expect(try await exchanges.value.allSatisfy { $0.text == "all's" })
    #expect(fixture.network.requests.count == 3)
  }

  @Test("after a response could not be shared, requests do not wait for two minutes")
  func marks() async throws {
    let fixture = try ManagerFixture()
    let gate = Gate()
    fixture.network.serve(fixture.url) { _ in .ok("mine", cacheControl: "no-store").held(by: gate) }
    gate.letThrough(1)
    _ = try await fixture.send()

    var exchanges = fixture.send(times: 2)
    try await Polling.until { gate.arrivals >= 3 }
    gate.letThrough(2)
    _ = try await exchanges.value
    fixture.clock.advance(by: .seconds(121))
    exchanges = fixture.send(times: 2)
    await fixture.clock.sleepers(1)
    await gate.arrived(4)
    #expect(gate.arrivals == 4)
    gate.open()
    _ = try await exchanges.value
  }

  @Test("the two minutes are over in time, even if the clock is set back")
  func marksAndClock() async throws {
    let fixture = try ManagerFixture()
    let gate = Gate()
    fixture.network.serve(fixture.url) { _ in .ok("mine", cacheControl: "no-store").held(by: gate) }
    gate.letThrough(1)
    _ = try await fixture.send()

    fixture.clock.setNow(fixture.clock.now - .seconds(3_600))
    fixture.clock.advance(by: .seconds(121))
    let exchanges = fixture.send(times: 2)
    // One request waits for the other, or both are sent.
    try await Polling.until { gate.held == 2 || (gate.held == 1 && fixture.clock.pendingSleeps == 1) }
    #expect(gate.held == 1)
    gate.open()
    _ = try await exchanges.value
  }

  @Test("a response to a request with credentials is shared only by requests with equal credentials")
  func credentials() async throws {
    let fixture = try ManagerFixture { $0.validator = ETagValidator(mode: .shared) }
    let gate = Gate()
    fixture.network.serve(fixture.url) { request in
      .ok(request.headerFields[.authorization] ?? "anonymous", cacheControl: "max-age=60").held(by: gate)
    }
    let exchanges = fixture.send(times: 4) { [.authorization: "Bearer \($0)"] }
    try await Polling.until { gate.arrivals >= 4 }
    gate.open()
    #expect(Set(try await exchanges.value.map(\.text)) == ["Bearer 0", "Bearer 1", "Bearer 2", "Bearer 3"])
  }

  @Test("two variants of a resource whose Vary field was unknown make two requests", arguments: StorageKind.allCases)
  func variants(_ kind: StorageKind) async throws {
    let fixture = try ManagerFixture(kind) { $0.waitForStores() }
    let gate = Gate()
    fixture.network.serve(fixture.url) { request in
      .ok(request.headerFields[.acceptLanguage] ?? "", cacheControl: "max-age=60", fields: [.vary: "Accept-Language"]).held(
        by: gate)
    }
    let languages: @Sendable (Int) -> HTTPFields = { [.acceptLanguage: $0 % 2 == 0 ? "de" : "nl"] }
    let exchanges = fixture.send(times: 20, languages)
    await fixture.clock.sleepers(19)
    gate.letThrough(1)
    try await Polling.until { gate.arrivals >= 2 }
    // Nine requests for the other variant wait for the tenth.
    try await Polling.until { fixture.clock.pendingSleeps == 9 }
    gate.open()

    let results = try await exchanges.value
    #expect(results.filter { $0.text == "de" }.count == 10 && results.filter { $0.text == "nl" }.count == 10)
    #expect(fixture.network.requests.count == 2)
  }

  @Test("if the leader leaves before the response, one of the waiting requests is sent")
  func leaderLeaves() async throws {
    let fixture = try ManagerFixture { $0.waitForStores() }
    let gate = Gate()
    fixture.network.serve(fixture.url) { _ in .ok("text", cacheControl: "max-age=60").held(by: gate) }
    let leader = Task { try await fixture.send() }
    await gate.arrived()
    let exchanges = fixture.send(times: 10)
    await fixture.clock.sleepers(10)

    leader.cancel()
    try await Polling.until { gate.arrivals >= 2 }
    try await Polling.until { fixture.clock.pendingSleeps == 9 }
    gate.open()

    #expect(try await exchanges.value.allSatisfy { $0.text == "text" })
    #expect(fixture.network.requests.count == 2)
    await #expect(throws: CacheError.self) { try await leader.value }
  }

  @Test("if several leaders leave, one request at a time is sent")
  func leadersLeave() async throws {
    let fixture = try ManagerFixture { $0.waitForStores() }
    let gate = Gate()
    let name = try #require(HTTPField.Name("X-Who"))
    fixture.network.serve(fixture.url) { _ in .ok("text", cacheControl: "max-age=60").held(by: gate) }
    let tasks = (0..<8).map { who in Task { try await fixture.send([name: "\(who)"]) } }
    for turn in 1...5 {
      try await Polling.until { gate.arrivals == turn && fixture.clock.pendingSleeps == 8 - turn }
      guard turn < 5 else { break }
      let leader = try #require(fixture.network.requests.last?.headerFields[name].flatMap { Int($0) })
      tasks[leader].cancel()
    }
    gate.open()
    var results: [String] = []
    for task in tasks { if let response = try? await task.value { results.append(response.text) } }
    #expect(results == Array(repeating: "text", count: 4))
    #expect(fixture.network.requests.count == 5)
  }

  @Test("a request with another transfer timeout is sent itself, because the first request's timeout would apply to it")
  func timeouts() async throws {
    let fixture = try ManagerFixture()
    let gate = Gate()
    fixture.network.serve(fixture.url) { _ in .ok("text", cacheControl: "max-age=60").held(by: gate) }
    let hasty = Task { try await fixture.send(options: RequestOptions { $0.timeout = .seconds(60) }) }
    let patient = Task { try await fixture.send() }
    try await Polling.until { gate.arrivals == 2 }
    gate.open()
    for task in [hasty, patient] { #expect(try await task.value.text == "text") }
  }

  @Test("if the leader's request fails, all waiting requests are sent, or all are served the stale response if that is allowed")
  func failure() async throws {
    let fixture = try ManagerFixture()
    let (first, others) = (Gate(), Gate())
    fixture.network.respond(to: fixture.url, with: .failure(.connectionLost).held(by: first))
    fixture.network.serve(fixture.url) { _ in .ok("text", cacheControl: "max-age=1").held(by: others) }
    let leader = Task { try await fixture.send() }
    await first.arrived()
    let exchanges = fixture.send(times: 10)
    await fixture.clock.sleepers(10)
    first.open()
    try await Polling.until { others.arrivals >= 10 }
    others.open()
    #expect(try await exchanges.value.allSatisfy { $0.text == "text" })
    await #expect(throws: CacheError.self) { try await leader.value }

    fixture.clock.advance(by: .seconds(5))
    let down = Gate()
    fixture.network.respond(to: fixture.url, with: .failure(.connectionLost).held(by: down))
    let shown = fixture.send(times: 10)
    await fixture.clock.sleepers(9)
    down.open()
    let results = try await shown.value
    #expect(results.allSatisfy { $0.text == "text" })
    #expect(results.filter { $0.cache == "Etagere;fwd=stale;ttl=-4;collapsed;detail=connectionLost" }.count == 9)
    #expect(fixture.network.requests.count == 12)
  }

  @Test("all waiting requests share the stale response that replaces a 503")
  func staleIfError() async throws {
    let fixture = try ManagerFixture()
    let gate = Gate()
    fixture.network.respond(
      to: fixture.url, with: .ok("old", cacheControl: "max-age=1, stale-if-error=60"),
      .response(HTTPResponse.Status(code: 503)).held(by: gate))
    _ = try await fixture.send()
    fixture.clock.advance(by: .seconds(5))
    let exchanges = fixture.send(times: 10)
    await fixture.clock.sleepers(9)
    gate.open()
    let results = try await exchanges.value
    #expect(results.filter { $0.text == "old" && $0.cache == "Etagere;fwd=stale;fwd-status=503;ttl=-4;collapsed" }.count == 9)
    try fixture.network.verify()
  }

  @Test("a request is sent itself after the time limit, and without a limit no request waits", arguments: [5, nil])
  func limit(_ seconds: Int?) async throws {
    let fixture = try ManagerFixture { $0.collapseTimeout = seconds.map { .seconds($0) } }
    let gate = Gate()
    fixture.network.serve(fixture.url) { _ in .ok("text", cacheControl: "max-age=60").held(by: gate) }
    let exchanges = fixture.send(times: 10)
    if seconds != nil {
      await fixture.clock.sleepers(9)
      await gate.arrived()
      #expect(gate.arrivals == 1)
      fixture.clock.advance(by: .seconds(5))
    }
    try await Polling.until { gate.arrivals >= 10 }
    gate.open()
    #expect(try await exchanges.value.allSatisfy { $0.text == "text" && !$0.cache.contains("collapsed") })
  }

  @Test(
    "a request does not wait if another response would not satisfy it, or not soon",
    arguments: [
      [.range: "bytes=0-1"], [.cacheControl: "no-cache"], [.cacheControl: "max-age=0"], [.ifMatch: "\"1\""],
    ] as [HTTPFields])
  func apart(_ fields: HTTPFields) async throws {
    let fixture = try ManagerFixture()
    let gate = Gate()
    fixture.network.serve(fixture.url) { _ in .ok("text", cacheControl: "max-age=60").held(by: gate) }
    let exchanges = fixture.send(times: 3) { $0 == 0 ? [:] : fields }
    try await Polling.until { gate.arrivals >= 3 }
    gate.open()
    _ = try await exchanges.value
  }

  @Test("unsafe methods and requests with a body are each sent")
  func unsafe() async throws {
    let fixture = try ManagerFixture()
    let gate = Gate()
    fixture.network.serve(fixture.url) { _ in .ok("text", cacheControl: "max-age=60").held(by: gate) }
    async let get = fixture.send()
    async let post = fixture.send([:], .post, sending: "x")
    async let search = fixture.send([:], .get, sending: "y")
    async let options = fixture.send([:], .options)
    try await Polling.until { gate.arrivals >= 4 }
    gate.open()
    _ = try await (get, post, search, options)
  }

  @Test("a request after a purge does not wait for a request before it")
  func purge() async throws {
    let fixture = try ManagerFixture()
    let gate = Gate()
    fixture.network.respond(
      to: fixture.url, with: .ok("old", cacheControl: "max-age=60").held(by: gate), .ok("new", cacheControl: "max-age=60"))
    let late = Task { try await fixture.send() }
    await gate.arrived()
    try await fixture.manager.purge(.url(fixture.url))
    #expect(try await fixture.send().text == "new")
    gate.open()
    #expect(try await late.value.text == "old")
    #expect(try await fixture.send().text == "new")
  }

  @Test("a request whose lookup lasts while many other responses are stored looks up again once, and later requests join it")
  func slowLookup() async throws {
    let (fixture, store) = try ManagerFixture.held()
    let gate = Gate()
    fixture.network.serve(fixture.url) { _ in .ok("text", cacheControl: "max-age=60").held(by: gate) }
    var look = store.hold(.look)
    let slow = Task { try await fixture.send() }
    var lookups = 0
    for round in 0..<4 {
      await look.arrived()
      lookups += 1
      for number in 0..<64 {
        let path = "/\(round)/\(number)"
        fixture.network.respond(to: try fixture.url(path), with: .ok("other", cacheControl: "max-age=60"))
        _ = try await fixture.send(path: path)
      }
      let next = store.hold(.look)
      look.open()
      try await Polling.until { gate.held == 1 || next.held == 1 }
      look = next
      if gate.held == 1 { break }
    }
    look.open()
    try #require(lookups <= 2)

    let joining = Task { try await fixture.send() }
    await fixture.observer.joined()
    gate.open()

    #expect(try await slow.value.text == "text")
    #expect(try await joining.value.cache == ManagerFixture.collapsed)
    #expect(fixture.network.requests(for: fixture.url).count == 1)
  }

  @Test("a request that looked into the stores too early finds the response that was stored since")
  func late() async throws {
    let (fixture, store) = try ManagerFixture.held()
    fixture.network.serve(fixture.url) { _ in .ok("text", cacheControl: "max-age=60") }
    let look = store.hold(.look)
    let late = Task { try await fixture.send() }
    await look.arrived()

    #expect(try await fixture.send().cache == "Etagere;fwd=uri-miss;ttl=60;stored")
    look.open()

    #expect(try await late.value.cache == "Etagere;hit;ttl=60")
    #expect(fixture.network.requests.count == 1)
  }
}
