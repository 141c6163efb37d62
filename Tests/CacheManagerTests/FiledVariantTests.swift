import CacheCore
import CacheManager
import CacheTesting
import ETagValidation
import Foundation
import HTTPTypes
import MemoryStore
import Testing

@Suite("A 304 that names the variant of another request")
struct FiledVariantTests {
  private static let text = String(repeating: "text", count: 100)

  private func fixture(_ keeping: Keeping) throws -> ManagerFixture {
    let fixture = try ManagerFixture(keeping)
    fixture.network.answer(
      fixture.url,
      .ok(Self.text, etag: "\"1\"", cacheControl: "max-age=600", fields: [.vary: "Accept-Language"]),
      .notModified(etag: "\"1\"", cacheControl: "max-age=600"))
    return fixture
  }

  private func load(_ fixture: ManagerFixture, _ language: String) async throws -> Resource<Data> {
    try await fixture.manager.load(ResourceRequest(fixture.url, headerFields: [.acceptLanguage: language]))
  }

  @Test(
    "an HTTP request stores the confirmed variant as its caller reads it, and the next equal request is a hit",
    arguments: Keeping.allCases)
  func exchange(_ keeping: Keeping) async throws {
    let fixture = try fixture(keeping)
    _ = try await fixture.ask([.acceptLanguage: "de"])
    let named = try await fixture.ask([.acceptLanguage: "nl"])
    #expect(named.text == Self.text && named.cache.hasPrefix("Etagere;fwd=vary-miss;fwd-status=304"))
    fixture.clock.advance(by: .seconds(10))
    for language in ["nl", "de"] {
      if keeping != .memory { fixture.restart() }
      let again = try await fixture.ask([.acceptLanguage: language])
      #expect(again.text == Self.text && again.cache == "Etagere;hit;ttl=590" && again.fields[.age] == "10")
    }
    try fixture.network.verify()
  }

  @Test("a load stores the confirmed variant", arguments: Keeping.allCases)
  func load(_ keeping: Keeping) async throws {
    let fixture = try fixture(keeping)
    #expect(try await load(fixture, "de").source == .network)
    #expect(try await load(fixture, "nl").source == .revalidated)
    for language in ["nl", "de"] {
      if keeping != .memory { fixture.restart() }
      let again = try await load(fixture, language)
      #expect(again.text == Self.text && again.validation == .notAttempted)
    }
    try fixture.network.verify()
  }

  @Test("equal requests wait for the variant that is being stored")
  func collapsed() async throws {
    let fixture = try ManagerFixture()
    let gate = Gate()
    fixture.network.answer(
      fixture.url,
      .ok(Self.text, etag: "\"1\"", cacheControl: "max-age=600", fields: [.vary: "Accept-Language"]),
      .notModified(etag: "\"1\"", cacheControl: "max-age=600").held(by: gate))
    _ = try await fixture.ask([.acceptLanguage: "de"])
    let asked = fixture.ask(times: 10) { _ in [.acceptLanguage: "nl"] }
    await fixture.clock.sleepers(9)
    gate.open()
    #expect(try await asked.value.allSatisfy { $0.text == Self.text })
    try fixture.network.verify()
  }

  @Test("a variant that is purged in the meantime is not stored")
  func purged() async throws {
    let fixture = try fixture(.everywhere)
    _ = try await fixture.ask([.acceptLanguage: "de"])
    let named = try await fixture.exchange([.acceptLanguage: "nl"])
    try await fixture.manager.purge(.url(fixture.url))
    #expect(try await named.body.collect().count == Self.text.utf8.count)
    var rest = 0
    while let chunk = try await named.body.source.next() { rest += chunk.count }
    #expect(rest == 0 && fixture.memory.count == 0 && fixture.disk.keys.isEmpty)
  }
}
