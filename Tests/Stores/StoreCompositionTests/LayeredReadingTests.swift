import CacheCore
import CacheTesting
import DiskStore
import HTTPTypes
import StoreComposition
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Suite("Layered store: lookups")
struct LayeredReadingTests {
  private let key = CacheKey(resource: "https://example.com/a")

  @Test("the first layer that has an entry returns it, and the others are not read")
  func order() async throws {
    let (upper, lower) = (VolatileStore(), VolatileStore())
    try await upper.store(Data("upper".utf8), for: key, metadata: metadata())
    try await lower.store(Data("lower".utf8), for: key, metadata: metadata())
    let store = try LayeredStore([upper, lower])

    #expect(try await store.text(key) == "upper")
    #expect(try await store.variants(of: key.resource).count == 1)
    #expect(lower.opened == 0)
    #expect(store.counters.layers.map(\.hits) == [2, 0])
  }

  @Test("an entry in a lower layer is copied unchanged into the layers above", arguments: [false, true])
  func promotion(byVariants: Bool) async throws {
    let (first, second, third) = (VolatileStore(), VolatileStore(), VolatileStore())
    let stored = metadata()
    try await third.store(Data("kept".utf8), for: key, metadata: stored)
    let store = try LayeredStore([first, second, third])

    if byVariants { _ = try await store.variants(of: key.resource) } else { _ = try await store.entry(for: key) }
    await store.flush()

    for layer in [first, second] {
      #expect(try await layer.text(key) == "kept")
      #expect(try await layer.entry(for: key)?.metadata.revision == stored.revision)
    }
    #expect(store.counters.promotions == 1)
  }

  @Test("the keys of entries with a cache tag are found, also below a newer entry without the tag")
  func tagged() async throws {
    let (upper, lower) = (VolatileStore(), VolatileStore())
    let store = try LayeredStore([upper, lower])
    let tag = try #require(HTTPField.Name("Cache-Tag"))
    var tagged = metadata()
    tagged.response.headerFields[tag] = "news"
    let keys = (0..<3).map { CacheKey(resource: "https://example.com/\($0)") }
    for key in keys { try await lower.store(Data("old".utf8), for: key, metadata: tagged) }
    try await upper.store(Data("new".utf8), for: keys[0], metadata: metadata())
    try await upper.store(Data("new".utf8), for: keys[1], metadata: tagged)
    #expect(try await store.keys(tagged: "news") == Set(keys))
    #expect(try await store.keys(tagged: "new").isEmpty)
    #expect(try await store.entries().count == 3)
    #expect(try await ReadOnlyStore(lower).keys(tagged: "news").count == 3)
  }

  @Test("the usage is the sum over the layers, and unknown if a layer does not count")
  func usage() async throws {
    let folder = try TemporaryFolder()
    let (upper, lower) = (VolatileStore(), try DiskCache(path: folder.path, configuration: .init(sizeLimit: 1 << 20)))
    try await LayeredStore([upper, lower]).store(Data(count: 1_000), for: key, metadata: metadata())
    let usage = try #require(await lower.usage())
    #expect(usage.entries == 1 && usage.bytes >= 1_000)
    #expect(try await LayeredStore([upper, lower]).usage() == StoreUsage(entries: 2, bytes: 1_000 + usage.bytes, limit: nil))
    #expect(try await LayeredStore([NullStore(), lower]).usage() == usage)
    #expect(try await LayeredStore([upper, PiecewiseStore(pieces: 1)]).usage() == nil)
    await lower.close()
  }

  @Test("a body above the limit is not copied, and none is with a limit of 0", arguments: [0, 3])
  func promotionLimit(limit: Int64) async throws {
    let (upper, lower) = (VolatileStore(), VolatileStore())
    try await lower.store(Data("kept".utf8), for: key, metadata: metadata())
    let store = try LayeredStore([upper, lower], configuration: .init(promotionLimit: limit))

    #expect(try await store.text(key) == "kept")
    await store.flush()

    #expect(upper.keys.isEmpty)
    #expect(store.counters.promotions == 0)
    #expect(store.counters.skippedPromotions == (limit == 0 ? 0 : 1))
  }

  @Test("a slow copy into an upper layer does not delay readers, and the body is copied in chunks")
  func promotionOfLargeBody() async throws {
    let (upper, lower) = (HeldStore(), PiecewiseStore(pieces: 200))
    let store = try LayeredStore([upper, lower])

    let entry = try #require(await store.entry(for: key))
    #expect(try await entry.body.collect().count == 200 * PiecewiseStore.piece.count)
    // The copy has not got beyond its first chunk, and nothing has read ahead for it.
    await upper.gate.arrived()
    #expect(lower.handedOut == 200 + 1)

    upper.gate.open()
    await store.flush()
    #expect(upper.largestChunk == PiecewiseStore.piece.count)
    #expect(try await upper.inner.bytes(key)?.count == 200 * PiecewiseStore.piece.count)
  }

  @Test("an entry removed during a batch lookup is not returned, even if it could not be removed everywhere")
  func removedMeanwhile() async throws {
    // Given
    let (upper, lower) = (HeldStore(), VolatileStore())
    let store = try LayeredStore([upper, lower])
    let other = CacheKey(resource: "https://example.com/b")
    for key in [key, other] { try await upper.inner.store(Data("old".utf8), for: key, metadata: metadata()) }
    upper.responses.close()
    let look = Task { try await store.values(for: [key, other]) }
    await upper.responses.arrived()

    // When
    upper.inner.failure = CacheError(.fileSystem, reason: "the disk is gone")
    #expect(await failure { try await store.remove(key, ifRevision: nil) }?.code == .fileSystem)
    upper.inner.failure = nil
    upper.responses.open()

    // Then
    #expect(try await Set(look.value.keys) == [other])
  }

  @Test("a range is read from its layer, and the whole entry is copied")
  func range() async throws {
    let (upper, lower) = (VolatileStore(), VolatileStore())
    try await lower.store(Data("0123456789".utf8), for: key, metadata: metadata())
    let store = try LayeredStore([upper, lower])

    #expect(try await store.entry(for: key, range: 2..<5)?.body.collect() == Data("234".utf8))
    await store.flush()
    #expect(try await upper.text(key) == "0123456789")
  }

  @Test("a variant that one layer has lost is returned from another, and one in both from the upper one")
  func variants() async throws {
    let (upper, lower) = (VolatileStore(), VolatileStore())
    let (german, french) = (key.variant("lang=de"), key.variant("lang=fr"))
    try await upper.store(Data("oben".utf8), for: german, metadata: metadata(vary: "Accept-Language"))
    try await lower.store(Data("unten".utf8), for: german, metadata: metadata(vary: "Accept-Language"))
    try await lower.store(Data("en bas".utf8), for: french, metadata: metadata(vary: "Accept-Language"))
    let store = try LayeredStore([upper, lower])

    var found: [String: String] = [:]
    for entry in try await store.variants(of: key.resource) {
      found[entry.key.variant] = String(decoding: try await entry.body.collect(), as: UTF8.self)
    }
    #expect(found == ["lang=de": "oben", "lang=fr": "en bas"])
  }

  @Test("a failure of one layer is counted, and a lookup throws it if no other layer has the entry")
  func failures() async throws {
    let (upper, lower) = (VolatileStore(), VolatileStore())
    try await lower.store(Data("kept".utf8), for: key, metadata: metadata())
    upper.failure = CacheError(.fileSystem, reason: "the disk is gone")
    let store = try LayeredStore([upper, lower], configuration: .init(promotionLimit: 0))

    #expect(try await store.text(key) == "kept")
    #expect(try await store.variants(of: key.resource).count == 1)
    #expect(store.counters.layers.map(\.failures) == [2, 0])

    let absent = CacheKey(resource: "https://example.com/absent")
    #expect(try await Set(store.values(for: [key, absent]).keys) == [key])
    let lookups: [@Sendable () async throws -> Void] = [
      { _ = try await store.entry(for: absent) },
      { _ = try await store.values(for: [absent]) },
      { _ = try await store.variants(of: absent.resource) },
      { _ = try await store.latestVariants(of: absent.resource) },
      { _ = try await store.transforms(of: absent.resource) },
    ]
    for lookup in lookups { #expect(await failure { try await lookup() }?.reason == "the disk is gone") }
    #expect(store.counters.layers.map(\.failures) == [8, 0])

    (upper.failure, lower.failure) = (nil, CacheError(.storeUnavailable, reason: "the server is gone"))
    for lookup in lookups { #expect(await failure { try await lookup() }?.code == .storeUnavailable) }
    #expect(store.counters.layers.map(\.failures) == [8, 5])

    upper.failure = .cancelled
    #expect(await failure { _ = try await store.entry(for: key) }?.isCancellation == true)
  }

  @Test("a list contains each entry once, and fails if a layer fails")
  func listing() async throws {
    let (upper, lower) = (VolatileStore(), VolatileStore())
    let other = CacheKey(resource: "https://example.com/b")
    try await upper.store(Data("new".utf8), for: key, metadata: metadata(etag: "\"new\""))
    try await lower.store(Data("old".utf8), for: key, metadata: metadata(etag: "\"old\""))
    try await lower.store(Data("b".utf8), for: other, metadata: metadata(etag: "\"old\""))
    let store = try LayeredStore([upper, lower])

    #expect(try await Set(store.entries { _, _ in true }.map(\.key)) == [key, other])
    // Lookups do not find the lower layer's version of the first entry, but other machines may.
    #expect(try await Set(store.entries { $1.response.headerFields[.eTag] == "\"old\"" }.map(\.key)) == [key, other])
    lower.failure = CacheError(.fileSystem, reason: "the disk is gone")
    #expect(await failure { _ = try await store.entries { _, _ in true } }?.code == .fileSystem)
  }

  @Test("a store without layers and invalid settings are refused")
  func settings() async {
    #expect(await failure { _ = try LayeredStore([]) }?.code == .invalidConfiguration)
    for configuration in [LayeredStore.Configuration(promotionLimit: -1), .init(backlog: 0)] {
      #expect(await failure { _ = try LayeredStore([NullStore()], configuration: configuration) }?.code == .invalidConfiguration)
    }
  }
}

extension CacheKey {
  func variant(_ variant: String) -> CacheKey { CacheKey(resource: resource, variant: variant, transform: transform) }
}
