import CacheCore
import CacheManager
import CacheTesting
import Foundation
import Testing

@Suite("A value that its encoder can't hold")
struct UnstorableVariantTests {
  /// Holds text without exclamation marks.
  private struct Calm: ResourceEncoder {
    let id = ComponentID(Calm.self)

    func canEncode(_ value: String) -> Bool { !value.contains("!") }

    func encode(_ value: String, _ metadata: StoredMetadata) throws(CacheError) -> Data {
      guard !value.contains("?") else { throw CacheError(.encodingFailed, reason: "no such sign") }
      return Data(value.utf8)
    }
  }

  private let shop = Workshop()
  private var transform: ResourceTransform<String> { ResourceTransform(decoder: Workshop.Decoder(shop: shop), encoder: Calm()) }

  private func failures(_ house: House) -> [CacheError.Code] {
    house.observer.events.compactMap { if case .storeFailed(_, let error) = $0 { error.code } else { nil } }
  }

  @Test("is not stored, and its original is, under every policy", arguments: StoragePolicy.allCases)
  func original(_ policy: StoragePolicy) async throws {
    let house = try House()
    house.network.answer(house.url, .ok("loud!", cacheControl: "max-age=60"))

    #expect(try await house.load(transform, .keeping(policy)).origins == "network transformed")
    #expect(house.stored() == [""])
    house.restart()

    let later = try await house.load(transform, .keeping(policy))
    #expect(later.value == "loud!" && later.origins == "disk transformed")
    #expect(house.stored() == [""] && failures(house).isEmpty)
    try house.network.verify()
  }

  @Test("also where that shows in the attempt, which the observer is told of", arguments: [StoragePolicy.variants, .all])
  func attempt(_ policy: StoragePolicy) async throws {
    let house = try House()
    house.network.answer(house.url, .ok("why?", cacheControl: "max-age=60"))

    #expect(try await house.load(transform, .keeping(policy)).value == "why?")

    #expect(house.stored() == [""] && failures(house) == [.encodingFailed])
  }

  @Test("leaves an original that is confirmed by a 304, and replaced by a 200; what can be held is a variant again")
  func changes() async throws {
    let house = try House()
    house.network.answer(
      house.url, .ok("one!", etag: "\"1\"", cacheControl: "no-cache"), .notModified(etag: "\"1\"", cacheControl: "no-cache"),
      .ok("two!", etag: "\"2\"", cacheControl: "no-cache"), .ok("three", etag: "\"3\"", cacheControl: "no-cache"),
      .notModified(etag: "\"3\"", cacheControl: "no-cache"))
    var seen: [String] = []

    for _ in 0..<5 {
      let resource = try await house.load(transform, .keeping(.variants))
      seen.append("\(resource.value) \(resource.origins) \(house.stored() == [""])")
      house.restart()
    }

    #expect(
      seen == [
        "one! network transformed true", "one! revalidated transformed true", "two! network transformed true",
        "three network transformed false",
        "three revalidated disk false",
      ])
    #expect(house.stored() == [transform.id])
    try house.network.verify()
  }

  @Test("leaves nothing of an answer that may not be stored, nor where the disk may not be written")
  func nothing() async throws {
    let house = try House()
    let other = try house.url("/other")
    house.network.answer(house.url, .ok("loud!", cacheControl: "no-store"))
    house.network.answer(other, .ok("loud!", cacheControl: "max-age=60"))

    _ = try await house.load(transform, .keeping(.variants))
    _ = try await house.load(transform, .keeping(.variants) { $0.writes = .memory }, at: other)

    #expect(house.disk.keys.isEmpty)
  }
}
