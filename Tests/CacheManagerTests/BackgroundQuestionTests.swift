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
  private func house(_ gate: Gate, _ answer: ScriptedAnswer) async throws -> House {
    let house = try House()
    house.network.answer(house.url, .ok("old", etag: "\"1\"", cacheControl: Self.stale), answer.held(by: gate))
    _ = try await house.ask()
    house.clock.advance(by: .seconds(2))
    return house
  }

  @Test("a load does not ask what an exchange is asking: it shows what is stored, and then what that has brought")
  func loadBehindExchange() async throws {
    let gate = Gate()
    let house = try await house(gate, .ok("new", etag: "\"2\"", cacheControl: "max-age=60"))
    #expect(try await house.ask().text == "old")
    await gate.arrived()
    var texts: [String] = []
    for try await event in house.manager.events(for: house.url) {
      switch event {
      case .progress: break
      case .stale(let old):
        texts.append(old.text)
        gate.open()
      case .final(let new): texts.append(new.text)
      }
    }
    #expect(texts == ["old", "new"])
    try house.network.verify()
    #expect(house.network.requests.count == 2)
  }

  @Test("an exchange does not ask what a load is asking")
  func exchangeBehindLoad() async throws {
    let gate = Gate()
    let house = try await house(gate, .notModified(cacheControl: "max-age=60"))
    #expect(try await house.manager.load(house.url).text == "old")
    await gate.arrived()
    for _ in 0..<3 { #expect(try await house.ask().cache == "Etagere;hit;ttl=-1") }
    gate.open()
    try await Turns.until { house.manager.cachedInMemory(ResourceRequest(house.url), as: .bytes) != nil }
    #expect(try await house.ask().cache == "Etagere;hit;ttl=60")
    #expect(house.network.requests.count == 2)
  }

  @Test("when the question fails, the load that waited for it asks for itself")
  func failed() async throws {
    let gate = Gate()
    let house = try await house(gate, .failure(.connectionLost))
    house.network.answer(house.url, .ok("new", etag: "\"2\"", cacheControl: "max-age=60"))
    #expect(try await house.ask().text == "old")
    await gate.arrived()
    var last: String?
    for try await event in house.manager.events(for: house.url) {
      if case .stale = event { gate.open() }
      if case .final(let new) = event { last = new.text }
    }
    #expect(last == "new")
    try house.network.verify()
  }

  @Test("of two stale variants one is asked about at a time")
  func variants() async throws {
    let house = try House()
    let gate = Gate()
    let vary: HTTPFields = [.vary: "Accept-Language"]
    house.network.serve(house.url) { request in
      let tag = request.headerFields[.acceptLanguage] ?? ""
      return .ok(tag, etag: "\"\(tag)\"", cacheControl: Self.stale, fields: vary)
    }
    for language in ["de", "nl"] { _ = try await house.ask([.acceptLanguage: language]) }
    house.clock.advance(by: .seconds(2))
    house.network.serve(house.url) { request in
      .ok(request.headerFields[.acceptLanguage] ?? "", cacheControl: "max-age=60", fields: vary).held(by: gate)
    }
    for language in ["de", "nl", "nl"] { #expect(try await house.ask([.acceptLanguage: language]).cache == "Etagere;hit;ttl=-1") }
    await gate.arrived()
    #expect(house.network.requests.count == 3)
    gate.open()
    // The first is fresh now; the second is asked about at a later use.
    try await Turns.until { house.network.requests.count == 3 && house.isFresh("de") }
    // A hit does not suspend: the question behind it has to get its turn.
    try await Turns.until {
      if !house.isFresh("nl") { _ = try await house.ask([.acceptLanguage: "nl"]) }
      return house.isFresh("nl")
    }
  }

  @Test("one that another variant answers is read to its end, behind everybody's back: the next equal request is a hit")
  func filed() async throws {
    let house = try House()
    let vary: HTTPFields = [.vary: "Accept-Language"]
    house.network.serve(house.url) { request in
      let tag = request.headerFields[.acceptLanguage] ?? ""
      return .ok(tag, etag: "\"\(tag)\"", cacheControl: Self.stale, fields: vary)
    }
    for language in ["de", "nl"] { _ = try await house.ask([.acceptLanguage: language]) }
    house.clock.advance(by: .seconds(2))
    // Who wants German is to have the Dutch one from now on.
    house.network.answer(house.url, .notModified(etag: "\"nl\"", cacheControl: "max-age=60"))

    #expect(try await house.ask([.acceptLanguage: "de"]).text == "de")
    try await Turns.until { house.isFresh("de") }

    let again = try await house.ask([.acceptLanguage: "de"])
    #expect(again.text == "nl" && again.cache == "Etagere;hit;ttl=60")
    try house.network.verify()
    #expect(house.network.requests.count == 3)
  }
}

extension House {
  /// Whether memory has a fresh answer in a language.
  fileprivate func isFresh(_ language: String) -> Bool {
    let request = ResourceRequest(url, headerFields: [.acceptLanguage: language])
    return manager.cachedInMemory(request, as: .bytes) != nil
  }
}
