import CacheCore
import CacheManager
import CacheTesting
import ETagValidation
import Foundation
import HTTPTypes
import MemoryStore
import Testing

@Suite("A 304 that names the variant of another request")
struct ConfirmedVariantTests {
  private static let text = String(repeating: "text", count: 100)

  private func fixture(_ kind: StorageKind) throws -> ManagerFixture {
    let fixture = try ManagerFixture(kind)
    fixture.network.respond(
      to: fixture.url,
      with: .ok(Self.text, etag: "\"1\"", cacheControl: "max-age=600", fields: [.vary: "Accept-Language"]),
      .notModified(etag: "\"1\"", cacheControl: "max-age=600"))
    return fixture
  }

  private func load(_ fixture: ManagerFixture, _ language: String) async throws -> Resource<Data> {
    try await fixture.manager.load(ResourceRequest(fixture.url, headerFields: [.acceptLanguage: language]))
  }

  @Test(
    "an HTTP request stores the confirmed variant as its caller reads it, and the next equal request is a hit",
    arguments: StorageKind.allCases)
  func exchange(_ kind: StorageKind) async throws {
    let fixture = try fixture(kind)
    _ = try await fixture.send([.acceptLanguage: "de"])
    let named = try await fixture.send([.acceptLanguage: "nl"])
    #expect(named.text == Self.text && named.cache.hasPrefix("Etagere;fwd=vary-miss;fwd-status=304"))
    fixture.clock.advance(by: .seconds(10))
    for language in ["nl", "de"] {
      if kind != .memory { fixture.restart() }
      let again = try await fixture.send([.acceptLanguage: language])
      #expect(again.text == Self.text && again.cache == "Etagere;hit;ttl=590" && again.fields[.age] == "10")
    }
    try fixture.network.verify()
  }

  @Test("a load stores the confirmed variant", arguments: StorageKind.allCases)
  func load(_ kind: StorageKind) async throws {
    let fixture = try fixture(kind)
    #expect(try await load(fixture, "de").source == .network)
    #expect(try await load(fixture, "nl").source == .revalidated)
    for language in ["nl", "de"] {
      if kind != .memory { fixture.restart() }
      let again = try await load(fixture, language)
      #expect(again.text == Self.text && again.validation == .notAttempted)
    }
    try fixture.network.verify()
  }

  @Test("equal requests wait for the variant that is being stored")
  func collapsed() async throws {
    let fixture = try ManagerFixture()
    let gate = Gate()
    fixture.network.respond(
      to: fixture.url,
      with: .ok(Self.text, etag: "\"1\"", cacheControl: "max-age=600", fields: [.vary: "Accept-Language"]),
      .notModified(etag: "\"1\"", cacheControl: "max-age=600").held(by: gate))
    _ = try await fixture.send([.acceptLanguage: "de"])
    let exchanges = fixture.send(times: 10) { _ in [.acceptLanguage: "nl"] }
    await fixture.clock.sleepers(9)
    gate.open()
    #expect(try await exchanges.value.allSatisfy { $0.text == Self.text })
    try fixture.network.verify()
  }

  @Test("a variant that is purged in the meantime is not stored")
  func purged() async throws {
    let fixture = try fixture(.everywhere)
    _ = try await fixture.send([.acceptLanguage: "de"])
    let named = try await fixture.exchange([.acceptLanguage: "nl"])
    try await fixture.manager.purge(.url(fixture.url))
    #expect(try await named.body.collect().count == Self.text.utf8.count)
    var rest = 0
    while let chunk = try await named.body.source.next() { rest += chunk.count }
    #expect(rest == 0 && fixture.memory.count == 0 && fixture.disk.keys.isEmpty)
  }
}
