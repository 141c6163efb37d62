import CacheCore
import CacheManager
import CacheTesting
import ETagValidation
import Foundation
import HTTPTypes
import MemoryStore
import Testing

/// The page *CacheManager* has a table of what requests with other components share. These tests hold its rows.
@Suite("What requests with other components share")
struct ReplacedComponentTests {
  private static let asPrivate = RequestOptions { $0.validator = .use(ETagValidator()) }
  private static let unvalidated = RequestOptions { $0.validator = .disabled }

  private func text(_ call: CoalescingCase.Call, _ fixture: ManagerFixture, _ options: RequestOptions = RequestOptions())
    async throws -> String
  {
    switch call {
    case .load: try await fixture.manager.load(fixture.url, options: options).text
    case .respond: try await fixture.send(options: options).text
    }
  }

  // MARK: Validators

  @Test(
    "a response that a private cache stores is not used by requests of a shared cache that would not store it",
    arguments: [
      [.cacheControl: "private, max-age=60"], [.cacheControl: "max-age=60, PRIVATE"], [.setCookie: "session=alice"],
      [.cacheControl: "max-age=60, private=\"X-User\""] as HTTPFields,
    ], CoalescingCase.Call.allCases)
  func privateResponse(_ fields: HTTPFields, _ call: CoalescingCase.Call) async throws {
    let fixture = try ManagerFixture { $0.validator = ETagValidator(mode: .shared) }
    let (user, count) = (try #require(HTTPField.Name("X-User")), Counter())
    fixture.network.serve(fixture.url) { _ in
      count.increment()
      var fields = fields
      if fields[.cacheControl]?.contains("X-User") == true { fields[user] = "alice" }
      return .ok("\(count.value)", etag: "\"\(count.value)\"", fields: fields)
    }
    let options = RequestOptions {
      $0.validator = .use(ETagValidator(defaultLifetime: .seconds(60)))
    }
    #expect(try await text(call, fixture, options) == "1")
    #expect(try await text(call, fixture, options) == "1")

    #expect(fixture.manager.cachedInMemory(fixture.url) == nil)
    #expect(try await fixture.manager.lookup(fixture.url) == .miss)
    let alone = try await fixture.failure(fixture.url, .policy(.cacheOnly))
    #expect(alone.code == .notCached)
    #expect(try await text(call, fixture) == "2")
    #expect(fixture.network.requests.last?.headerFields[.ifNoneMatch] == nil)
  }

  @Test("a response that both modes store is shared by requests with both validators")
  func publicResponse() async throws {
    let fixture = try ManagerFixture { $0.validator = ETagValidator(mode: .shared) }
    fixture.network.respond(to: fixture.url, with: .ok("a", cacheControl: "max-age=60"))

    _ = try await fixture.manager.load(fixture.url, options: Self.asPrivate)

    #expect(try await fixture.manager.load(fixture.url).source == .memory)
    #expect(fixture.manager.cachedInMemory(fixture.url)?.text == "a")
    #expect(fixture.manager.cachedInMemory(fixture.url, options: Self.asPrivate)?.text == "a")
  }

  @Test("a response to credentials that a private cache stores is used with these credentials alone", arguments: [false, true])
  func credentials(isValidated: Bool) async throws {
    let fixture = try ManagerFixture { $0.validator = ETagValidator(mode: .shared) }
    fixture.network.serve(fixture.url) { .ok($0.headerFields[.authorization] ?? "-", cacheControl: "max-age=60") }
    let alice = ResourceRequest(fixture.url, headerFields: [.authorization: "alice"], options: Self.asPrivate)
    _ = try await fixture.manager.load(alice)

    let options = isValidated ? RequestOptions() : Self.unvalidated
    #expect(fixture.manager.cachedInMemory(fixture.url, options: options) == nil)
    #expect(try await fixture.manager.load(fixture.url, options: options).text == "-")
  }

  @Test(
    "a response that is stored without a validator is not used by requests with one",
    arguments: ["no-store", "private", "max-age=60"], [CacheMode.private, .shared])
  func unvalidated(_ cacheControl: String, _ mode: CacheMode) async throws {
    let fixture = try ManagerFixture { $0.validator = ETagValidator(mode: mode) }
    fixture.network.serve(fixture.url) { .ok($0.headerFields[.authorization] ?? "-", cacheControl: cacheControl) }
    let alice = ResourceRequest(fixture.url, headerFields: [.authorization: "alice"], options: Self.unvalidated)
    _ = try await fixture.manager.load(alice)

    #expect(fixture.manager.cachedInMemory(alice, as: .bytes)?.text == "alice")
    for policy in [LoadPolicy.standard, .cacheFirst, .staleWhileRevalidate] {
      #expect(fixture.manager.cachedInMemory(fixture.url, options: .policy(policy)) == nil)
    }
    fixture.restart()
    #expect(try await fixture.failure(fixture.url, .policy(.cacheOnly)).code == .notCached)
    try await fixture.manager.purge(.url(fixture.url), .soft)
    #expect(try await fixture.failure(fixture.url, .policy(.cacheOnly)).code == .notCached)
    var offline = Self.unvalidated
    offline.policy = .cacheOnly
    #expect(try await fixture.failure(fixture.url, offline).code == .notCached)
    #expect(try await fixture.manager.load(fixture.url).text == "-")
  }

  // MARK: Downloaders, keys, interceptors and memory

  @Test("requests with another downloader use the stored responses of the URL, and share no running request")
  func downloader() async throws {
    let (fixture, gate) = (try ManagerFixture(), Gate())
    let other = ScriptedDownloader(clock: fixture.clock)
    fixture.network.serve(fixture.url) { _ in .ok("manager", cacheControl: "max-age=60").held(by: gate) }
    other.serve(fixture.url) { _ in .ok("other", cacheControl: "max-age=60").held(by: gate) }
    let options = RequestOptions { $0.downloader = .use(other) }

    async let one = fixture.manager.load(fixture.url)
    async let two = fixture.manager.load(fixture.url, options: options)
    await gate.arrived(2)
    gate.open()

    #expect(try await [one.text, two.text] == ["manager", "other"])
    #expect(try await fixture.manager.load(fixture.url, options: options).source == .memory)
    #expect(try await fixture.manager.load(fixture.url).source == .memory)
    #expect(fixture.network.requests.count == 1 && other.requests.count == 1)
  }

  @Test("requests with another key share neither stored responses nor running requests", arguments: CoalescingCase.Call.allCases)
  func key(_ call: CoalescingCase.Call) async throws {
    let (fixture, gate, count) = (try ManagerFixture(), Gate(), Counter())
    fixture.network.serve(fixture.url) { _ in
      count.increment()
      return .ok("\(count.value)", cacheControl: "max-age=60").held(by: gate)
    }
    let keyed = RequestOptions { $0.key = "k" }

    async let one = text(call, fixture)
    async let two = text(call, fixture, keyed)
    await gate.arrived(2)
    gate.open()
    let texts = try await [one, two]

    #expect(Set(texts) == ["1", "2"])
    #expect(try await [text(call, fixture), text(call, fixture, keyed)] == texts)
  }

  @Test("requests with another memory store share the durable store")
  func memory() async throws {
    let fixture = try ManagerFixture()
    fixture.network.respond(to: fixture.url, with: .ok("a", cacheControl: "max-age=60"))
    _ = try await fixture.manager.load(fixture.url)

    let options = RequestOptions { $0.memory = .use(MemoryCache(clock: fixture.clock)) }

    #expect(try await fixture.manager.load(fixture.url, options: options).source == .disk)
  }
}
