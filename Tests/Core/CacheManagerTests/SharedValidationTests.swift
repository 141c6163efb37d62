import CacheCore
import CacheManager
import CacheTesting
import ETagValidation
import Foundation
import HTTPTypes
import MemoryStore
import Testing

/// A configuration in which many requests reach one manager at once.
struct CoalescingCase: Sendable, CustomTestStringConvertible {
  enum Call: CaseIterable, Sendable { case respond, load }

  let call: Call
  let mode: CacheMode
  let isModified: Bool
  let isOnDiskAlone: Bool

  static let all = Call.allCases.flatMap { call in
    [CacheMode.private, .shared].flatMap { mode in
      [false, true].flatMap { isModified in
        [false, true].map { CoalescingCase(call: call, mode: mode, isModified: isModified, isOnDiskAlone: $0) }
      }
    }
  }

  var testDescription: String {
    "\(call), \(mode), \(isModified ? 200 : 304), \(isOnDiskAlone ? "disk" : "memory and disk")"
  }

  func fixture(_ joins: JoinCounter) throws -> ManagerFixture {
    try ManagerFixture {
      $0.validator = ETagValidator(mode: mode)
      $0.observer = joins
      if isOnDiskAlone { $0.memory = nil }
    }
  }

  func text(_ fixture: ManagerFixture, _ url: URL) async throws -> String {
    switch call {
    case .respond: try await fixture.send(path: url.path).text
    case .load: try await fixture.manager.load(url).text
    }
  }

  /// Returns the texts of `count` requests, spread evenly over the URLs.
  func texts(_ count: Int, _ fixture: ManagerFixture, _ urls: [URL]) -> Task<[String], any Error> {
    Task {
      try await withThrowingTaskGroup(of: String.self) { group in
        for index in 0..<count { group.addTask { try await text(fixture, urls[index % urls.count]) } }
        return try await group.reduce(into: []) { $0.append($1) }
      }
    }
  }
}

/// Counts the requests that joined another one.
final class JoinCounter: LoadObserver {
  let id = ComponentID.unique(JoinCounter.self)
  private let gate = Gate(isOpen: true)

  func observe(_ event: CacheEvent, of load: LoadID) {
    if case .joined = event { _ = gate.arrive {} }
  }

  /// Returns when `count` requests have joined.
  func joined(_ count: Int) async { await gate.arrived(count) }
}

@Suite("Request coalescing without a stated lifetime")
struct SharedValidationTests {
  private static let tag = "\"1\""

  /// Returns a manager with a stored response that must be validated before each use.
  private func fixture(
    mode: CacheMode = .private, _ cacheControl: String? = nil, _ change: (inout ResourceManager.Configuration) -> Void = { _ in }
  ) async throws -> ManagerFixture {
    let fixture = try ManagerFixture {
      $0.validator = ETagValidator(mode: mode)
      change(&$0)
    }
    fixture.network.respond(to: fixture.url, with: .ok("old", etag: Self.tag, cacheControl: cacheControl))
    _ = try await fixture.send()
    return fixture
  }

  @Test(
    "1,000 requests for 30 stored responses send 30 conditional requests, and later ones are sent again",
    arguments: CoalescingCase.all)
  func stored(_ configuration: CoalescingCase) async throws {
    let (joins, gate) = (JoinCounter(), Gate())
    let fixture = try configuration.fixture(joins)
    let urls = try (0..<30).map { try fixture.url("/\($0)") }
    for url in urls {
      fixture.network.respond(to: url, with: .ok("old", etag: Self.tag))
      _ = try await configuration.text(fixture, url)
      let response: ScriptedResponse = configuration.isModified ? .ok("new", etag: "\"2\"") : .notModified(etag: Self.tag)
      fixture.network.serve(url) { _ in response.held(by: gate) }
    }

    let texts = configuration.texts(1_000, fixture, urls)
    await joins.joined(970)
    await gate.arrived(30)
    gate.open()

    let expected = configuration.isModified ? "new" : "old"
    #expect(try await texts.value == Array(repeating: expected, count: 1_000))
    #expect(fixture.network.conditional == 30 && fixture.network.requests.count == 60)
    // These requests arrive after the responses.
    for url in urls { #expect(try await configuration.text(fixture, url) == expected) }
    #expect(fixture.network.conditional == 60 && fixture.network.requests.count == 90)
  }

  @Test(
    "1,000 requests for 30 resources that are not stored send 30 requests",
    arguments: CoalescingCase.all.filter { $0.isModified })
  func cold(_ configuration: CoalescingCase) async throws {
    let (joins, gate) = (JoinCounter(), Gate())
    let fixture = try configuration.fixture(joins)
    let urls = try (0..<30).map { try fixture.url("/\($0)") }
    for url in urls { fixture.network.serve(url) { _ in .ok("new", etag: Self.tag).held(by: gate) } }

    let texts = configuration.texts(1_000, fixture, urls)
    await joins.joined(970)
    gate.open()

    #expect(try await texts.value == Array(repeating: "new", count: 1_000))
    #expect(fixture.network.requests.count == 30)
  }

  @Test("1,000 loads at random times never have two simultaneous requests for one resource", arguments: [true, false])
  func overlap(isOnDiskAlone: Bool) async throws {
    let network = CountingDownloader()
    let fixture = try ManagerFixture {
      $0.downloader = network
      if isOnDiskAlone { $0.memory = nil }
    }
    let urls = try (0..<30).map { try fixture.url("/\($0)") }
    for url in urls { _ = try await fixture.manager.load(url) }
    try await withThrowingTaskGroup(of: Void.self) { group in
      for index in 0..<1_000 { group.addTask { _ = try await fixture.manager.load(urls[index % 30]) } }
      try await group.waitForAll()
    }
    #expect(network.most == 1)
  }

  @Test(
    "a response that must be validated before each use is shared only by the requests that waited for it",
    arguments: ["no-cache", "max-age=0", "max-age=0, must-revalidate", "no-cache, public"], [CacheMode.private, .shared])
  func alwaysValidated(_ cacheControl: String, _ mode: CacheMode) async throws {
    let fixture = try await fixture(mode: mode, cacheControl)
    let gate = Gate()
    fixture.network.respond(to: fixture.url, with: .notModified(etag: Self.tag, cacheControl: cacheControl).held(by: gate))
    let exchanges = fixture.send(times: 10)
    await fixture.clock.sleepers(9)
    gate.open()

    let results = try await exchanges.value
    #expect(results.allSatisfy { $0.text == "old" })
    #expect(results.filter { $0.cache == "Etagere;fwd=stale;fwd-status=304;ttl=0;collapsed" }.count == 9)
    fixture.network.respond(to: fixture.url, with: .ok("new", etag: "\"2\"", cacheControl: cacheControl))
    #expect(try await fixture.send().text == "new")
    try fixture.network.verify()
  }

  @Test("a 304 that may not be stored is for its own request alone", arguments: ["no-store", "private"])
  func unstorable(_ cacheControl: String) async throws {
    let fixture = try await fixture(mode: .shared)
    let (first, others) = (Gate(), Gate())
    fixture.network.respond(to: fixture.url, with: .notModified(etag: Self.tag, cacheControl: cacheControl).held(by: first))
    fixture.network.serve(fixture.url) { _ in .notModified(etag: Self.tag, cacheControl: cacheControl).held(by: others) }
    let exchanges = fixture.send(times: 10)
    await fixture.clock.sleepers(9)
    first.open()
    try await Polling.until { others.arrivals == 9 }
    others.open()
    #expect(try await exchanges.value.allSatisfy { $0.text == "old" && !$0.cache.contains("collapsed") })
  }

  @Test("each variant, and each set of credentials, needs its own request", arguments: [CacheMode.private, .shared])
  func variants(_ mode: CacheMode) async throws {
    let fixture = try ManagerFixture {
      $0.validator = ETagValidator(mode: mode)
      $0.waitForStores()
    }
    let gate = Gate()
    fixture.network.serve(fixture.url) { request in
      let text = "\(request.headerFields[.acceptLanguage] ?? "") \(request.headerFields[.authorization] ?? "")"
      return .ok(text, cacheControl: "no-cache, public", fields: [.vary: "Accept-Language"]).held(by: gate)
    }
    let exchanges = fixture.send(times: 20) {
      [.acceptLanguage: $0 % 2 == 0 ? "de" : "nl", .authorization: $0 % 4 < 2 ? "a" : "b"]
    }
    await fixture.clock.sleepers(18)
    gate.letThrough(2)
    // For the other variant of each user, one request is sent and four wait.
    try await Polling.until { gate.arrivals == 4 && fixture.clock.pendingSleeps == 8 }
    gate.open()
    let results = try await exchanges.value
    for text in ["de a", "de b", "nl a", "nl b"] { #expect(results.filter { $0.text == text }.count == 5) }
    #expect(fixture.network.requests.count == 4)
  }

  @Test("a request that requires more than a validated response is sent itself")
  func directives() async throws {
    let fixture = try await fixture()
    let gate = Gate()
    fixture.network.serve(fixture.url) { _ in .notModified(etag: Self.tag).held(by: gate) }
    let leader = Task { try await fixture.send() }
    await gate.arrived()
    let fields = ["min-fresh=10", "max-age=10", "max-stale", "no-cache", "max-age=0"]
    let exchanges = fixture.send(times: fields.count) { [.cacheControl: fields[$0]] }
    // The stored response satisfies `max-stale`, and the last two requests are never coalesced.
    await fixture.clock.sleepers(2)
    await gate.arrived(3)
    gate.open()

    let results = try await exchanges.value + [leader.value]
    #expect(results.allSatisfy { $0.text == "old" })
    #expect(results.filter { $0.cache.contains("collapsed") }.count == 1)
    #expect(results.filter { $0.cache == "Etagere;hit;ttl=0" }.count == 1)
    #expect(fixture.network.conditional == 4)
  }

  @Test(
    "after a purge between arrival and response, the waiting requests make one new request", arguments: [PurgeMode.hard, .soft])
  func purge(_ mode: PurgeMode) async throws {
    let joins = JoinCounter()
    let fixture = try await fixture { $0.observer = joins }
    let (first, second) = (Gate(), Gate())
    fixture.network.respond(to: fixture.url, with: .notModified(etag: Self.tag).held(by: first))
    // The first request no longer finds its confirmed response.
    if mode == .hard { fixture.network.respond(to: fixture.url, with: .ok("new", etag: "\"2\"")) }
    fixture.network.respond(to: fixture.url, with: .ok("new", etag: "\"2\"").held(by: second))
    let exchanges = fixture.send(times: 10)
    await joins.joined(9)
    try await fixture.manager.purge(.url(fixture.url), mode)
    first.open()
    await second.arrived()
    await joins.joined(9 + 8)
    second.open()

    let results = try await exchanges.value
    #expect(results.filter { $0.text == "new" }.count == (mode == .hard ? 10 : 9))
    try fixture.network.verify()
  }

  @Test("a request that arrives during the body is sent itself, and earlier requests read the body as it arrives")
  func slowBody() async throws {
    let fixture = try ManagerFixture()
    let (head, body) = (Gate(), Gate())
    fixture.network.respond(
      to: fixture.url, with: .ok("first", etag: Self.tag).held(by: head).bodyHeld(by: body), .ok("second", etag: "\"2\""))
    let exchanges = fixture.send(times: 5)
    await fixture.clock.sleepers(4)
    head.open()
    await body.arrived()

    #expect(try await fixture.send().text == "second")
    body.open()

    #expect(try await exchanges.value.allSatisfy { $0.text == "first" })
    try fixture.network.verify()
    #expect(fixture.network.requests.count == 2)
  }

  @Test("a request that arrives during a body of unknown length does not wait for its end")
  func unknownLength() async throws {
    let fixture = try ManagerFixture(.memory)
    let body = Gate()
    fixture.network.respond(
      to: fixture.url, with: .ok("first", etag: Self.tag).withoutLength().bodyHeld(by: body), .ok("second", etag: "\"2\""))
    let first = Task { try await fixture.send() }
    await body.arrived()

    #expect(try await fixture.send().text == "second")
    body.open()

    #expect(try await first.value.text == "first")
    try fixture.network.verify()
  }

  @Test(
    "clients that differ in any field get their own response if it may not be reused, and none waits for another one",
    arguments: ["no-cache", "max-age=0", nil], ["X-API-Key", "X-Forwarded-For", "Accept-Language", "traceparent"])
  func differentFields(_ cacheControl: String?, _ name: String) async throws {
    let fixture = try ManagerFixture {
      $0.validator = ETagValidator(mode: .shared)
      $0.waitForStores()
    }
    let gate = Gate()
    let field = try #require(HTTPField.Name(name))
    fixture.network.serve(fixture.url) { request in
      .ok(request.headerFields[field] ?? "", cacheControl: cacheControl).held(by: gate)
    }
    // Each of ten clients sends two requests.
    let exchanges = fixture.send(times: 20) { [field: "client \($0 % 10)"] }
    await fixture.clock.sleepers(19)
    gate.letThrough(1)
    // Now one request of each client is sent, and only the client's other request waits for it.
    try await Polling.until { gate.arrivals == 10 && fixture.clock.pendingSleeps == 9 }
    gate.open()
    let results = try await exchanges.value
    for client in 0..<10 { #expect(results.filter { $0.text == "client \(client)" }.count == 2) }
    #expect(fixture.network.requests.count == 10)
  }

  @Test("requests with equal fields share a response without a lifetime, whatever the order of the fields and the conditions")
  func equalFields() async throws {
    let fixture = try await fixture()
    let gate = Gate()
    fixture.network.respond(to: fixture.url, with: .notModified(etag: Self.tag).held(by: gate))
    let orders: [HTTPFields] = [
      [.acceptLanguage: "de", .userAgent: "a"], [.userAgent: "a", .acceptLanguage: "de"],
      [.userAgent: "a", .acceptLanguage: "de", .ifNoneMatch: "\"2\""],
    ]
    let exchanges = fixture.send(times: 3) { orders[$0] }
    await fixture.clock.sleepers(2)
    gate.open()
    #expect(try await exchanges.value.allSatisfy { $0.text == "old" })
    try fixture.network.verify()
  }

  @Test("the cookie of a 304 reaches the client of its request, and is neither stored nor shared")
  func confirmedCookie() async throws {
    let fixture = try await fixture(mode: .shared, "max-age=60")
    let gate = Gate()
    fixture.clock.advance(by: .seconds(120))
    fixture.network.serve(fixture.url) { request in
      let session = request.headerFields[.cookie] ?? ""
      let fields: HTTPFields = session.isEmpty ? [.eTag: Self.tag] : [.eTag: Self.tag, .setCookie: session]
      return .response(.notModified, fields: fields).held(by: gate)
    }
    let exchanges = fixture.send(times: 3) { [.cookie: "session=\($0)"] }
    await fixture.clock.sleepers(2)
    gate.open()
    let results = try await exchanges.value
    #expect(Set(results.map { $0.fields[.setCookie] }) == ["session=0", "session=1", "session=2"])
    #expect(results.allSatisfy { $0.text == "old" })
    #expect(try await fixture.send().fields[.setCookie] == nil)
  }

  @Test("an origin that permits it sets one cookie for all clients that wait for the response", arguments: [false, true])
  func permittedCookie(isIgnored: Bool) async throws {
    let fixture = try ManagerFixture { $0.validator = ETagValidator(mode: .shared, ignoresCookies: isIgnored) }
    let gate = Gate()
    let cacheControl = isIgnored ? nil : "public"
    fixture.network.respond(
      to: fixture.url, with: .ok("page", cacheControl: cacheControl, fields: [.setCookie: "theme=a"]).held(by: gate))
    let exchanges = fixture.send(times: 3)
    await fixture.clock.sleepers(2)
    gate.open()
    #expect(try await exchanges.value.allSatisfy { $0.text == "page" && $0.fields[.setCookie] == "theme=a" })
    try fixture.network.verify()
  }

  @Test("users with different cookies do not share a response without a stated lifetime")
  func cookies() async throws {
    let fixture = try ManagerFixture {
      $0.validator = ETagValidator(mode: .shared, ignoresCookies: true)
      $0.waitForStores()
    }
    let gate = Gate()
    fixture.network.serve(fixture.url) { request in
      let user = request.headerFields[.cookie] ?? ""
      return .ok(user, etag: "\"\(user)\"").held(by: gate)
    }
    let users: @Sendable (Int) -> HTTPFields = { [.cookie: $0 % 2 == 0 ? "user=a" : "user=b"] }
    var exchanges = fixture.send(times: 20, users)
    await fixture.clock.sleepers(19)
    gate.letThrough(1)
    // The requests of the other user wait for one of them.
    try await Polling.until { gate.arrivals == 2 && fixture.clock.pendingSleeps == 9 }
    gate.letThrough(1)
    var results = try await exchanges.value
    for user in ["user=a", "user=b"] { #expect(results.filter { $0.text == user }.count == 10) }

    // The stored response shows that cookies matter.
    exchanges = fixture.send(times: 20, users)
    try await Polling.until { gate.arrivals == 4 && fixture.clock.pendingSleeps == 18 }
    gate.open()
    results = try await exchanges.value
    for user in ["user=a", "user=b"] { #expect(results.filter { $0.text == user }.count == 10) }
    #expect(fixture.network.requests.count == 4)
  }

  @Test("a request that is still looking into the store when the response arrives shares it")
  func late() async throws {
    let (fixture, store) = try ManagerFixture.held()
    fixture.network.respond(to: fixture.url, with: .ok("old", etag: Self.tag), .notModified(etag: Self.tag))
    _ = try await fixture.send()
    fixture.restart()
    let look = store.hold(.look)
    let late = Task { try await fixture.send() }
    await look.arrived()
    #expect(try await fixture.send().cache == "Etagere;fwd=stale;fwd-status=304;ttl=0")
    look.open()

    #expect(try await late.value.cache == "Etagere;fwd=stale;fwd-status=304;ttl=0;collapsed")
    try fixture.network.verify()
    #expect(fixture.network.conditional == 1)
  }

  @Test("a request that looked into the store before a purge does not share an earlier response")
  func latePurge() async throws {
    let (fixture, store) = try ManagerFixture.held()
    let gate = Gate()
    fixture.network.respond(
      to: fixture.url, with: .ok("old", etag: Self.tag), .notModified(etag: Self.tag).held(by: gate), .ok("new"))
    _ = try await fixture.send()
    fixture.restart()
    let first = Task { try await fixture.send() }
    await gate.arrived()
    let look = store.hold(.look)
    let late = Task { try await fixture.send() }
    await look.arrived()
    gate.open()
    #expect(try await first.value.text == "old")
    try await fixture.manager.purge(.url(fixture.url), .soft)
    look.open()

    #expect(try await late.value.text == "new")
    try fixture.network.verify()
  }
}

/// A downloader whose responses state no lifetime. It counts the simultaneous requests for one URL.
private final class CountingDownloader: Downloader {
  let id = ComponentID.unique(CountingDownloader.self)
  private let state = Lock((waiting: [String: Int](), most: 0))

  /// The largest number of simultaneous requests for one URL.
  var most: Int { state.withLock { $0.most } }

  func download(_ request: DownloadRequest) async throws(CacheError) -> DownloadResponse {
    let path = request.head.path ?? ""
    state.withLock { state in
      state.waiting[path, default: 0] += 1
      state.most = max(state.most, state.waiting[path, default: 0])
    }
    for _ in 0..<3 { await Task.yield() }
    state.withLock { $0.waiting[path, default: 0] -= 1 }
    let isKnown = request.head.headerFields.contains(.ifNoneMatch)
    return .streaming(isKnown ? [] : ["text"], status: isKnown ? .notModified : .ok, fields: [.eTag: "\"1\""])
  }
}
