import CacheCore
import CacheManager
import CacheTesting
import ETagValidation
import Foundation
import HTTPTypes
import MemoryStore
import Testing

@Suite("A stored answer that turns out to be another request's too")
struct FiledVariantTests {
  private static let text = String(repeating: "text", count: 100)

  private func house(_ keeping: Keeping) throws -> House {
    let house = try House(keeping)
    house.network.answer(
      house.url,
      .ok(Self.text, etag: "\"1\"", cacheControl: "max-age=600", fields: [.vary: "Accept-Language"]),
      .notModified(etag: "\"1\"", cacheControl: "max-age=600"))
    return house
  }

  private func load(_ house: House, _ language: String) async throws -> Resource<Data> {
    try await house.manager.load(ResourceRequest(house.url, headerFields: [.acceptLanguage: language]))
  }

  @Test("an exchange files it as its caller reads it: the next equal request is a hit", arguments: Keeping.allCases)
  func exchange(_ keeping: Keeping) async throws {
    let house = try house(keeping)
    _ = try await house.ask([.acceptLanguage: "de"])
    let named = try await house.ask([.acceptLanguage: "nl"])
    #expect(named.text == Self.text && named.cache.hasPrefix("Etagere;fwd=vary-miss;fwd-status=304"))
    house.clock.advance(by: .seconds(10))
    for language in ["nl", "de"] {
      if keeping != .memory { house.restart() }
      let again = try await house.ask([.acceptLanguage: language])
      #expect(again.text == Self.text && again.cache == "Etagere;hit;ttl=590" && again.fields[.age] == "10")
    }
    try house.network.verify()
  }

  @Test("so does a load", arguments: Keeping.allCases)
  func load(_ keeping: Keeping) async throws {
    let house = try house(keeping)
    #expect(try await load(house, "de").source == .network)
    #expect(try await load(house, "nl").source == .revalidated)
    for language in ["nl", "de"] {
      if keeping != .memory { house.restart() }
      let again = try await load(house, language)
      #expect(again.text == Self.text && again.validation == .notAttempted)
    }
    try house.network.verify()
  }

  @Test("equal requests at once wait for it")
  func collapsed() async throws {
    let house = try House()
    let gate = Gate()
    house.network.answer(
      house.url,
      .ok(Self.text, etag: "\"1\"", cacheControl: "max-age=600", fields: [.vary: "Accept-Language"]),
      .notModified(etag: "\"1\"", cacheControl: "max-age=600").held(by: gate))
    _ = try await house.ask([.acceptLanguage: "de"])
    let asked = house.ask(times: 10) { _ in [.acceptLanguage: "nl"] }
    await house.clock.sleepers(9)
    gate.open()
    #expect(try await asked.value.allSatisfy { $0.text == Self.text })
    try house.network.verify()
  }

  @Test("what a purge meets meanwhile is not filed")
  func purged() async throws {
    let house = try house(.everywhere)
    _ = try await house.ask([.acceptLanguage: "de"])
    let named = try await house.exchange([.acceptLanguage: "nl"])
    try await house.manager.purge(.url(house.url))
    #expect(try await named.body.collect().count == Self.text.utf8.count)
    var rest = 0
    while let chunk = try await named.body.source.next() { rest += chunk.count }
    #expect(rest == 0 && house.memory.count == 0 && house.disk.keys.isEmpty)
  }
}
