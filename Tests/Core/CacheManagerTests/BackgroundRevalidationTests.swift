import CacheCore
import CacheTesting
import ETagValidation
import Foundation
import HTTPTypes
import MemoryStore
import Testing

@testable import CacheManager

@Suite("Background revalidations of stale responses")
struct BackgroundRevalidationTests {
  private static let stale = "max-age=1, stale-while-revalidate=60"

  /// Stores a stale response, and holds its revalidation.
  private func fixture(_ gate: Gate, _ response: ScriptedResponse) async throws -> ManagerFixture {
    let fixture = try ManagerFixture()
    fixture.network.respond(to: fixture.url, with: .ok("old", etag: "\"1\"", cacheControl: Self.stale), response.held(by: gate))
    _ = try await fixture.send()
    fixture.clock.advance(by: .seconds(2))
    return fixture
  }

  @Test("a load shows the stale response, sends no second request, and then shows the result of the background revalidation")
  func loadBehindExchange() async throws {
    let gate = Gate()
    let fixture = try await fixture(gate, .ok("new", etag: "\"2\"", cacheControl: "max-age=60"))
    #expect(try await fixture.send().text == "old")
    await gate.arrived()
    var texts: [String] = []
    for try await event in fixture.manager.events(for: fixture.url) {
      switch event {
      case .progress: break
      case .stale(let old):
        texts.append(old.text)
        gate.open()
      case .final(let new): texts.append(new.text)
      }
    }
    #expect(texts == ["old", "new"])
    try fixture.network.verify()
    #expect(fixture.network.requests.count == 2)
  }

  @Test("an HTTP request does not revalidate a response that a load is revalidating")
  func exchangeBehindLoad() async throws {
    let gate = Gate()
    let fixture = try await fixture(gate, .notModified(cacheControl: "max-age=60"))
    #expect(try await fixture.manager.load(fixture.url).text == "old")
    await gate.arrived()
    for _ in 0..<3 { #expect(try await fixture.send().cache == "Etagere;hit;ttl=-1") }
    gate.open()
    try await Polling.until { fixture.manager.cachedInMemory(ResourceRequest(fixture.url), as: .bytes) != nil }
    #expect(try await fixture.send().cache == "Etagere;hit;ttl=60")
    #expect(fixture.network.requests.count == 2)
  }

  @Test("if the revalidation fails, the load that waited for it sends its own request")
  func failed() async throws {
    let gate = Gate()
    let fixture = try await fixture(gate, .failure(.connectionLost))
    fixture.network.respond(to: fixture.url, with: .ok("new", etag: "\"2\"", cacheControl: "max-age=60"))
    #expect(try await fixture.send().text == "old")
    await gate.arrived()
    var last: String?
    for try await event in fixture.manager.events(for: fixture.url) {
      if case .stale = event { gate.open() }
      if case .final(let new) = event { last = new.text }
    }
    #expect(last == "new")
    try fixture.network.verify()
  }

  @Test("after the revalidating load is cancelled, one of its waiters sends the next request, and the others wait again")
  func cancelledLeader() async throws {
    let (first, second) = (Gate(), Gate())
    let fixture = try await fixture(first, .notModified(cacheControl: "max-age=60"))
    fixture.network.respond(to: fixture.url, with: .notModified(cacheControl: "max-age=60").held(by: second))
    let (manager, url, mark) = (fixture.manager, fixture.url, try #require(HTTPField.Name("X-Mark")))
    // Loads with other fields do not share a flight, but they revalidate the same response.
    func texts(_ number: Int, stale: Gate) -> Task<[String], any Error> {
      Task {
        var texts: [String] = []
        for try await event in manager.events(for: ResourceRequest(url, headerFields: [mark: "\(number)"])) {
          if case .stale(let old) = event {
            texts.append(old.text)
            stale.open()
          }
          if case .final(let new) = event { texts.append(new.text) }
        }
        return texts
      }
    }
    let leader = texts(0, stale: Gate())
    await first.arrived()
    var waiters: [Task<[String], any Error>] = []
    for number in 1...5 {
      let stale = Gate()
      waiters.append(texts(number, stale: stale))
      await stale.pass()
    }

    leader.cancel()
    await second.arrived()
    let load = try ResolvedRequest(ResourceRequest(url), manager.core)
    let key = TieredCache(load, resource: url.absoluteString).revalidationKey
    let probe = try #require(manager.core.flights.joinOpen(key, before: .max, WaiterNeeds<Flights.Done>()))
    try await Polling.until { probe.flight.awaiting == waiters.count }
    second.open()

    for waiter in waiters { #expect(try await waiter.value == ["old", "old"]) }
    #expect(fixture.network.requests.count == 3)
  }

  @Test("beyond a number of background revalidations, a stale response is used without one, and a later request revalidates it")
  func limited() async throws {
    let limit = 64
    let fixture = try ManagerFixture()
    let gate = Gate(isOpen: true)
    let paths = (0...limit).map { "/\($0)" }
    for path in paths {
      fixture.network.serve(try fixture.url(path)) { _ in .ok("text", etag: "\"1\"", cacheControl: Self.stale).held(by: gate) }
      _ = try await fixture.send(path: path)
    }
    fixture.clock.advance(by: .seconds(2))
    gate.close()
    let before = gate.arrivals
    for path in paths.dropLast() { #expect(try await fixture.send(path: path).cache == "Etagere;hit;ttl=-1") }
    await gate.arrived(before + limit)

    let (last, mark) = (try fixture.url(paths[limit]), try #require(HTTPField.Name("X-Mark")))
    #expect(try await fixture.send(path: paths[limit]).cache == "Etagere;hit;ttl=-1")
    // The load would wait for a revalidation in the background.
    #expect(try await fixture.manager.load(ResourceRequest(last, headerFields: [mark: "load"])).text == "text")
    await gate.arrived(before + limit + 1)
    #expect(fixture.network.requests(for: last).map { $0.headerFields[mark] } == [nil, "load"])

    gate.open()
    try await Polling.until { fixture.manager.cachedInMemory(ResourceRequest(last), as: .bytes) != nil }
    fixture.clock.advance(by: .seconds(2))
    try await Polling.until {
      _ = try await fixture.send(path: paths[limit])
      return fixture.network.requests(for: last).count == 3
    }
  }

  @Test("only one of two stale variants is revalidated at a time")
  func variants() async throws {
    let fixture = try ManagerFixture()
    let gate = Gate()
    let vary: HTTPFields = [.vary: "Accept-Language"]
    fixture.network.serve(fixture.url) { request in
      let tag = request.headerFields[.acceptLanguage] ?? ""
      return .ok(tag, etag: "\"\(tag)\"", cacheControl: Self.stale, fields: vary)
    }
    for language in ["de", "nl"] { _ = try await fixture.send([.acceptLanguage: language]) }
    fixture.clock.advance(by: .seconds(2))
    fixture.network.serve(fixture.url) { request in
      .ok(request.headerFields[.acceptLanguage] ?? "", cacheControl: "max-age=60", fields: vary).held(by: gate)
    }
    for language in ["de", "nl", "nl"] {
      #expect(try await fixture.send([.acceptLanguage: language]).cache == "Etagere;hit;ttl=-1")
    }
    await gate.arrived()
    #expect(fixture.network.requests.count == 3)
    gate.open()
    // The first variant is fresh now. The second is revalidated at a later use.
    try await Polling.until { fixture.network.requests.count == 3 && fixture.isFresh("de") }
    // A hit does not suspend, so the background revalidation needs a turn.
    try await Polling.until {
      if !fixture.isFresh("nl") { _ = try await fixture.send([.acceptLanguage: "nl"]) }
      return fixture.isFresh("nl")
    }
  }

  @Test("a background revalidation that confirms another variant is read to its end, so the next equal request is a hit")
  func filed() async throws {
    let fixture = try ManagerFixture()
    let vary: HTTPFields = [.vary: "Accept-Language"]
    fixture.network.serve(fixture.url) { request in
      let tag = request.headerFields[.acceptLanguage] ?? ""
      return .ok(tag, etag: "\"\(tag)\"", cacheControl: Self.stale, fields: vary)
    }
    for language in ["de", "nl"] { _ = try await fixture.send([.acceptLanguage: language]) }
    fixture.clock.advance(by: .seconds(2))
    // From now on, requests for German select the Dutch variant.
    fixture.network.respond(to: fixture.url, with: .notModified(etag: "\"nl\"", cacheControl: "max-age=60"))

    #expect(try await fixture.send([.acceptLanguage: "de"]).text == "de")
    try await Polling.until { fixture.isFresh("de") }

    let again = try await fixture.send([.acceptLanguage: "de"])
    #expect(again.text == "nl" && again.cache == "Etagere;hit;ttl=60")
    try fixture.network.verify()
    #expect(fixture.network.requests.count == 3)
  }
}

extension ManagerFixture {
  /// Whether memory has a fresh response in a language.
  fileprivate func isFresh(_ language: String) -> Bool {
    let request = ResourceRequest(url, headerFields: [.acceptLanguage: language])
    return manager.cachedInMemory(request, as: .bytes) != nil
  }
}
