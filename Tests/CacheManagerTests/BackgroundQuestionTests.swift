import CacheCore
import CacheManager
import CacheTesting
import ETagValidation
import Foundation
import HTTPTypes
import Testing

@Suite("Questions behind stale answers that have been shown")
struct BackgroundQuestionTests {
  private static let stale = "max-age=1, stale-while-revalidate=60"

  /// A stored answer that is stale, and a question about it that is held.
  private func fixture(_ gate: Gate, _ answer: ScriptedAnswer) async throws -> ManagerFixture {
    let fixture = try ManagerFixture()
    fixture.network.answer(fixture.url, .ok("old", etag: "\"1\"", cacheControl: Self.stale), answer.held(by: gate))
    _ = try await fixture.ask()
    fixture.clock.advance(by: .seconds(2))
    return fixture
  }

  @Test("a load does not ask what an exchange is asking: it shows what is stored, and then what that has brought")
  func loadBehindExchange() async throws {
    let gate = Gate()
    let fixture = try await fixture(gate, .ok("new", etag: "\"2\"", cacheControl: "max-age=60"))
    #expect(try await fixture.ask().text == "old")
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

  @Test("an exchange does not ask what a load is asking")
  func exchangeBehindLoad() async throws {
    let gate = Gate()
    let fixture = try await fixture(gate, .notModified(cacheControl: "max-age=60"))
    #expect(try await fixture.manager.load(fixture.url).text == "old")
    await gate.arrived()
    for _ in 0..<3 { #expect(try await fixture.ask().cache == "Etagere;hit;ttl=-1") }
    gate.open()
    try await Turns.until { fixture.manager.cachedInMemory(ResourceRequest(fixture.url), as: .bytes) != nil }
    #expect(try await fixture.ask().cache == "Etagere;hit;ttl=60")
    #expect(fixture.network.requests.count == 2)
  }

  @Test("when the question fails, the load that waited for it asks for itself")
  func failed() async throws {
    let gate = Gate()
    let fixture = try await fixture(gate, .failure(.connectionLost))
    fixture.network.answer(fixture.url, .ok("new", etag: "\"2\"", cacheControl: "max-age=60"))
    #expect(try await fixture.ask().text == "old")
    await gate.arrived()
    var last: String?
    for try await event in fixture.manager.events(for: fixture.url) {
      if case .stale = event { gate.open() }
      if case .final(let new) = event { last = new.text }
    }
    #expect(last == "new")
    try fixture.network.verify()
  }

  @Test("of two stale variants one is asked about at a time")
  func variants() async throws {
    let fixture = try ManagerFixture()
    let gate = Gate()
    let vary: HTTPFields = [.vary: "Accept-Language"]
    fixture.network.serve(fixture.url) { request in
      let tag = request.headerFields[.acceptLanguage] ?? ""
      return .ok(tag, etag: "\"\(tag)\"", cacheControl: Self.stale, fields: vary)
    }
    for language in ["de", "nl"] { _ = try await fixture.ask([.acceptLanguage: language]) }
    fixture.clock.advance(by: .seconds(2))
    fixture.network.serve(fixture.url) { request in
      .ok(request.headerFields[.acceptLanguage] ?? "", cacheControl: "max-age=60", fields: vary).held(by: gate)
    }
    for language in ["de", "nl", "nl"] {
      #expect(try await fixture.ask([.acceptLanguage: language]).cache == "Etagere;hit;ttl=-1")
    }
    await gate.arrived()
    #expect(fixture.network.requests.count == 3)
    gate.open()
    // The first is fresh now; the second is asked about at a later use.
    try await Turns.until { fixture.network.requests.count == 3 && fixture.isFresh("de") }
    // A hit does not suspend: the question behind it has to get its turn.
    try await Turns.until {
      if !fixture.isFresh("nl") { _ = try await fixture.ask([.acceptLanguage: "nl"]) }
      return fixture.isFresh("nl")
    }
  }

  @Test("one that another variant answers is read to its end, behind everybody's back: the next equal request is a hit")
  func filed() async throws {
    let fixture = try ManagerFixture()
    let vary: HTTPFields = [.vary: "Accept-Language"]
    fixture.network.serve(fixture.url) { request in
      let tag = request.headerFields[.acceptLanguage] ?? ""
      return .ok(tag, etag: "\"\(tag)\"", cacheControl: Self.stale, fields: vary)
    }
    for language in ["de", "nl"] { _ = try await fixture.ask([.acceptLanguage: language]) }
    fixture.clock.advance(by: .seconds(2))
    // Who wants German is to have the Dutch one from now on.
    fixture.network.answer(fixture.url, .notModified(etag: "\"nl\"", cacheControl: "max-age=60"))

    #expect(try await fixture.ask([.acceptLanguage: "de"]).text == "de")
    try await Turns.until { fixture.isFresh("de") }

    let again = try await fixture.ask([.acceptLanguage: "de"])
    #expect(again.text == "nl" && again.cache == "Etagere;hit;ttl=60")
    try fixture.network.verify()
    #expect(fixture.network.requests.count == 3)
  }
}

extension ManagerFixture {
  /// Whether memory has a fresh answer in a language.
  fileprivate func isFresh(_ language: String) -> Bool {
    let request = ResourceRequest(url, headerFields: [.acceptLanguage: language])
    return manager.cachedInMemory(request, as: .bytes) != nil
  }
}
