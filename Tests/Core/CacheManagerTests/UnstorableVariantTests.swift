import CacheCore
import CacheManager
import CacheTesting
import Foundation
import Testing

@Suite("Values that their encoder cannot encode")
struct UnstorableVariantTests {
  /// An encoder of text without exclamation marks.
  private struct SelectiveEncoder: ResourceEncoder {
    let id = ComponentID(SelectiveEncoder.self)

    func canEncode(_ value: String) -> Bool { !value.contains("!") }

    func encode(_ value: String, _ metadata: StoredMetadata) throws(CacheError) -> Data {
      guard !value.contains("?") else { throw CacheError(.encodingFailed, reason: "no such sign") }
      return Data(value.utf8)
    }
  }

  private let shop = TextTransformFixture()
  private var transform: ResourceTransform<String> {
    ResourceTransform(decoder: TextTransformFixture.Decoder(shop: shop), encoder: SelectiveEncoder())
  }

  private func failures(_ fixture: ManagerFixture) -> [CacheError.Code] {
    fixture.observer.events.compactMap { if case .storeFailed(_, let error) = $0 { error.code } else { nil } }
  }

  @Test("the value is not stored, and its original is, with every policy", arguments: StoragePolicy.allCases)
  func original(_ policy: StoragePolicy) async throws {
    let fixture = try ManagerFixture()
    fixture.network.respond(to: fixture.url, with: .ok("loud!", cacheControl: "max-age=60"))

    #expect(try await fixture.load(transform, .keeping(policy)).origins == "network transformed")
    #expect(fixture.stored() == [""])
    fixture.restart()

    let later = try await fixture.load(transform, .keeping(policy))
    #expect(later.value == "loud!" && later.origins == "disk transformed")
    #expect(fixture.stored() == [""] && failures(fixture).isEmpty)
    try fixture.network.verify()
  }

  @Test(
    "the original is also stored if encoding fails, and the observer receives the error",
    arguments: [StoragePolicy.variants, .all])
  func attempt(_ policy: StoragePolicy) async throws {
    let fixture = try ManagerFixture()
    fixture.network.respond(to: fixture.url, with: .ok("why?", cacheControl: "max-age=60"))

    #expect(try await fixture.load(transform, .keeping(policy)).value == "why?")

    #expect(fixture.stored() == [""] && failures(fixture) == [.encodingFailed])
  }

  @Test("the original is confirmed by a 304 and replaced by a 200, and an encodable value is a variant again")
  func changes() async throws {
    let fixture = try ManagerFixture()
    fixture.network.respond(
      to: fixture.url, with: .ok("one!", etag: "\"1\"", cacheControl: "no-cache"),
      .notModified(etag: "\"1\"", cacheControl: "no-cache"),
      .ok("two!", etag: "\"2\"", cacheControl: "no-cache"), .ok("three", etag: "\"3\"", cacheControl: "no-cache"),
      .notModified(etag: "\"3\"", cacheControl: "no-cache"))
    var seen: [String] = []

    for _ in 0..<5 {
      let resource = try await fixture.load(transform, .keeping(.variants))
      seen.append("\(resource.value) \(resource.origins) \(fixture.stored() == [""])")
      fixture.restart()
    }

    #expect(
      seen == [
        "one! network transformed true", "one! revalidated transformed true", "two! network transformed true",
        "three network transformed false",
        "three revalidated disk false",
      ])
    #expect(fixture.stored() == [transform.id])
    try fixture.network.verify()
  }

  @Test("nothing is stored of a response that may not be stored, or if the disk may not be written")
  func nothing() async throws {
    let fixture = try ManagerFixture()
    let other = try fixture.url("/other")
    fixture.network.respond(to: fixture.url, with: .ok("loud!", cacheControl: "no-store"))
    fixture.network.respond(to: other, with: .ok("loud!", cacheControl: "max-age=60"))

    _ = try await fixture.load(transform, .keeping(.variants))
    _ = try await fixture.load(transform, .keeping(.variants) { $0.writes = .memory }, at: other)

    #expect(fixture.disk.keys.isEmpty)
  }
}
