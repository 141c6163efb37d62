import CacheCore
import CacheManager
import CacheTesting
import Foundation
import HTTPTypes
import Testing

@Suite("Stored variants of values")
struct StoredVariantTests {
  private let shop = TextTransformFixture()

  @Test(
    "the policy decides whether the original, the encoded value, or both are stored",
    arguments: zip(StoragePolicy.allCases, [[true, false], [false, true], [true, true], [true, true]]))
  func policies(_ policy: StoragePolicy, _ kept: [Bool]) async throws {
    let fixture = try ManagerFixture()
    fixture.network.respond(to: fixture.url, with: .ok("abcdefgh", cacheControl: "max-age=60"))

    let resource = try await fixture.load(shop.short(), .keeping(policy))

    #expect(resource.value == "AB" && resource.origins == "network transformed")
    #expect([fixture.stored().contains(""), fixture.stored().contains(shop.short().id)] == kept)
  }

  @Test("the original is stored for a transform without an encoder, and for the bytes", arguments: StoragePolicy.allCases)
  func withoutEncoder(_ policy: StoragePolicy) async throws {
    let fixture = try ManagerFixture()
    let other = try fixture.url("/other")
    fixture.network.respond(to: fixture.url, with: .ok("abcdefgh", cacheControl: "max-age=60"))
    fixture.network.respond(to: other, with: .ok("abcdefgh", cacheControl: "max-age=60"))

    _ = try await fixture.load(shop.plain(), .keeping(policy))
    _ = try await fixture.load(.bytes, .keeping(policy), at: other)

    #expect(fixture.stored() == [""] && fixture.stored(other) == [""])
  }

  @Test("the automatic policy stores only the original if the value is not smaller")
  func automatic() async throws {
    let fixture = try ManagerFixture()
    fixture.network.serve(fixture.url) { _ in .ok("abcdefgh", cacheControl: "max-age=60") }

    _ = try await fixture.load(shop.short(6), .keeping(.automatic))
    #expect(fixture.stored() == [""])

    _ = try await fixture.load(shop.short(5), .keeping(.automatic))
    #expect(fixture.stored() == ["", shop.short(5).id])
  }

  @Test("the manager's policy applies if the request has none")
  func managersPolicy() async throws {
    let fixture = try ManagerFixture { $0.storagePolicy = .variants }
    fixture.network.respond(to: fixture.url, with: .ok("abcdefgh", cacheControl: "max-age=60"))

    _ = try await fixture.load(shop.short())

    #expect(fixture.stored() == [shop.short().id])
  }

  @Test("originals that are not stored do not enter memory either")
  func originalsOutOfMemory() async throws {
    let fixture = try ManagerFixture { $0.storagePolicy = .variants }
    fixture.network.respond(
      to: fixture.url, with: .ok("abcdefgh", etag: "\"1\"", cacheControl: "max-age=60"), .notModified(cacheControl: "max-age=60"),
      .ok("12345678", etag: "\"2\"", cacheControl: "max-age=60"))
    var seen: [String] = []

    for _ in 0..<3 {
      for _ in 0..<2 {
        let resource = try await fixture.load(shop.short())
        seen.append("\(resource.value) \(resource.origins)")
        #expect(fixture.inMemory() == [shop.short().id])
      }
      fixture.clock.advance(by: .seconds(61))
    }

    #expect(
      seen == [
        "AB network transformed", "AB memory memory", "AB revalidated memory", "AB memory memory", "12 network transformed",
        "12 memory memory",
      ])
    try fixture.network.verify()
  }

  @Test("a stored original does not enter memory if only variants are wanted")
  func originalOnDisk() async throws {
    let fixture = try ManagerFixture()
    fixture.network.respond(
      to: fixture.url, with: .ok("abcdefgh", etag: "\"1\"", cacheControl: "max-age=60"), .notModified(cacheControl: "max-age=60"))
    _ = try await fixture.load(.bytes)
    fixture.restart()

    #expect(try await fixture.load(shop.short(), .keeping(.variants)).origins == "disk transformed")
    #expect(fixture.inMemory() == [shop.short().id])
    fixture.restart()
    fixture.clock.advance(by: .seconds(61))
    #expect(try await fixture.load(shop.short(3), .keeping(.variants)).origins == "revalidated transformed")
    #expect(fixture.inMemory() == [shop.short(3).id])
  }

  @Test("an original enters memory if nothing else stores its value")
  func originalsInMemory() async throws {
    let fixture = try ManagerFixture()
    let (other, third) = (try fixture.url("/other"), try fixture.url("/third"))
    for url in [fixture.url, other, third] { fixture.network.respond(to: url, with: .ok("abcdefgh", cacheControl: "max-age=60")) }

    _ = try await fixture.load(shop.short(), .keeping(.variants) { $0.writes = .memory })
    #expect(fixture.inMemory() == ["", shop.short().id])
    _ = try await fixture.load(shop.plain(), .keeping(.variants), at: other)
    #expect(fixture.inMemory(other) == ["", shop.plain().id])
    _ = try await fixture.load(.bytes, .keeping(.variants), at: third)
    #expect(fixture.inMemory(third) == [""])
  }

  @Test("a stored variant is served without the original, without the network and without making it again")
  func warm() async throws {
    let fixture = try ManagerFixture()
    fixture.network.respond(to: fixture.url, with: .ok("abcdefgh", cacheControl: "max-age=60"))
    _ = try await fixture.load(shop.short(), .keeping(.variants))
    fixture.restart()

    let (warm, hot) = (try await fixture.load(shop.short()), try await fixture.load(shop.short()))

    #expect(warm.value == "AB" && warm.origins == "disk disk" && warm.key == fixture.key(shop.short()))
    #expect(warm.response.headerFields[.cacheControl] == "max-age=60")
    #expect(hot.value == "AB" && hot.origins == "memory memory")
    #expect(shop.decoded.value == 1 && shop.restored.value == 1)
    try fixture.network.verify()
  }

  @Test("a stored variant is read without its stored original")
  func originalIsNotRead() async throws {
    let fixture = try ManagerFixture()
    fixture.network.respond(to: fixture.url, with: .ok("abcdefgh", cacheControl: "max-age=60"))
    _ = try await fixture.load(shop.short(), .keeping(.all))
    fixture.restart()
    let opened = fixture.disk.opened

    let warm = try await fixture.load(shop.short())

    #expect(warm.origins == "disk disk" && fixture.disk.opened == opened + 1)
  }

  @Test("a value without a stored variant is made from the stored original without the network, and then stored")
  func fromOriginal() async throws {
    let fixture = try ManagerFixture()
    fixture.network.respond(to: fixture.url, with: .ok("abcdefgh", cacheControl: "max-age=60"))
    _ = try await fixture.manager.load(fixture.url)
    fixture.restart()

    let made = try await fixture.load(shop.short())
    fixture.restart()

    #expect(made.value == "AB" && made.origins == "disk transformed")
    #expect(try await fixture.load(shop.short()).origins == "disk disk")
    try fixture.network.verify()
  }

  @Test("if only another variant is stored, the whole original is loaded without conditions")
  func anotherTransform() async throws {
    let fixture = try ManagerFixture()
    fixture.network.serve(fixture.url) { _ in .ok("abcdefgh", etag: "\"1\"", cacheControl: "max-age=60") }
    _ = try await fixture.load(shop.short(2), .keeping(.variants))
    fixture.restart()

    #expect(try await fixture.load(shop.short(3), .keeping(.variants)).origins == "network transformed")
    fixture.restart()
    #expect(try await fixture.load(.bytes).text == "abcdefgh")

    #expect(fixture.network.requests.count == 3 && fixture.network.conditional == 0)
  }

  @Test("a response that may not be stored is not stored in any variant")
  func noStore() async throws {
    let fixture = try ManagerFixture()
    fixture.network.respond(to: fixture.url, with: .ok("abcdefgh", cacheControl: "no-store"))

    #expect(try await fixture.load(shop.short(), .keeping(.all)).value == "AB")

    #expect(fixture.stored().isEmpty && shop.encoded.value == 0)
  }

  @Test("layers that may not be written or read are not used")
  func layers() async throws {
    let fixture = try ManagerFixture()
    fixture.network.serve(fixture.url) { _ in .ok("abcdefgh", cacheControl: "max-age=60") }

    _ = try await fixture.load(shop.short(), .keeping(.all) { $0.writes = .memory })
    #expect(fixture.stored().isEmpty)
    _ = try await fixture.load(shop.short(), .keeping(.all) { $0.policy = .reload })
    #expect(fixture.stored() == ["", shop.short().id])
    fixture.restart()

    #expect(try await fixture.load(shop.short(), RequestOptions { $0.reads = .memory }).origins == "network transformed")
    #expect(shop.restored.value == 0)
  }

  @Test("each language has its own variant (Vary), and so has each partition")
  func variants() async throws {
    let fixture = try ManagerFixture()
    fixture.network.serve(fixture.url) { request in
      .ok("\(request.headerFields[.acceptLanguage] ?? "")-text", cacheControl: "max-age=60", fields: [.vary: "Accept-Language"])
    }
    func load(_ language: String, _ partition: String? = nil) async throws -> Resource<String> {
      let options = RequestOptions.keeping(.variants) { $0.partition = partition }
      return try await fixture.manager.load(
        ResourceRequest(fixture.url, headerFields: [.acceptLanguage: language], options: options), as: shop.short())
    }
    for language in ["de", "fr"] { _ = try await load(language) }
    fixture.restart()

    #expect([try await load("de").value, try await load("fr").value] == ["DE", "FR"])
    #expect(fixture.network.requests.count == 2 && shop.restored.value == 2)
    #expect(try await load("de", "tenant").origins == "network transformed")
    #expect(fixture.network.requests.count == 3)
  }

  @Test("an original at the end of redirects is found again")
  func redirected() async throws {
    let fixture = try ManagerFixture()
    let target = try fixture.url("/target")
    fixture.network.serve(fixture.url) { _ in .redirect(to: "/target") }
    fixture.network.respond(to: target, with: .ok("abcdefgh", cacheControl: "max-age=60"))
    _ = try await fixture.load(shop.short(), .keeping(.variants))
    fixture.restart()

    let warm = try await fixture.load(shop.short())

    #expect(warm.value == "AB" && warm.valueOrigin == .disk && warm.url == target)
    #expect(fixture.stored(target) == [shop.short().id])
  }

  @Test("without a validator, a stored variant is used within its time to live")
  func timeToLive() async throws {
    let fixture = try ManagerFixture { $0.validator = nil }
    fixture.network.serve(fixture.url) { _ in .ok("abcdefgh") }
    _ = try await fixture.load(shop.short(), .keeping(.variants) { $0.expiration = .after(.seconds(60)) })
    fixture.restart()
    #expect(try await fixture.load(shop.short()).origins == "disk disk")

    fixture.clock.advance(by: .seconds(60))

    #expect(try await fixture.load(shop.short()).origins == "network transformed")
  }

  @Test("a value that cannot be encoded or stored is still the result of the load")
  func failures() async throws {
    let fixture = try ManagerFixture()
    fixture.network.serve(fixture.url) { _ in .ok("abcdefgh", cacheControl: "max-age=60") }
    let transform = shop.plain().stored(as: "never") { _ throws(CacheError) in
      throw CacheError(.encodingFailed, reason: "no such encoder")
    } decode: {
      String(decoding: $0, as: UTF8.self)
    }

    #expect(try await fixture.load(transform, .keeping(.all)).value == "AB")
    #expect(fixture.stored() == [""])
    fixture.disk.refusesWrites = true
    #expect(try await fixture.load(shop.short(), .keeping(.all)).value == "AB")

    let failed = fixture.observer.events.compactMap { event in
      if case .storeFailed(let key, let error) = event { key.transform.isEmpty ? nil : error.code } else { nil }
    }
    #expect(failed == [.encodingFailed, .diskFull])
  }

  @Test("damaged and undecodable bytes are a miss, and are replaced", arguments: [true, false], [StoragePolicy.all, .variants])
  func damaged(_ isDamaged: Bool, _ policy: StoragePolicy) async throws {
    let fixture = try ManagerFixture()
    fixture.network.serve(fixture.url) { _ in .ok("abcdefgh", etag: "\"1\"", cacheControl: "max-age=60") }
    _ = try await fixture.load(shop.short(), .keeping(policy))
    let key = fixture.key(shop.short())
    if isDamaged {
      fixture.disk.damage(key)
    } else {
      let entry = try #require(try await fixture.disk.entry(for: key))
      try await fixture.disk.store(Data("no brackets".utf8), for: key, metadata: entry.metadata)
    }
    fixture.restart()

    let healed = try await fixture.load(shop.short(), .keeping(policy))
    fixture.restart()

    #expect(healed.value == "AB" && healed.origins == (policy == .all ? "disk transformed" : "network transformed"))
    #expect(fixture.network.requests.count == (policy == .all ? 1 : 2))
    #expect(try await fixture.load(shop.short()).origins == "disk disk")
  }

  @Test("a stored value that cannot be decoded at the moment stays in the store")
  func undecodableAtTheMoment() async throws {
    let fixture = try ManagerFixture()
    fixture.network.serve(fixture.url) { _ in .ok("abcdefgh", cacheControl: "max-age=60") }
    let isShort = Lock(true)
    let transform = shop.plain().stored(as: "text") {
      Data($0.utf8)
    } decode: { data throws(CacheError) in
      if isShort.withLock({ $0 }) { throw CacheError(.other, reason: "not enough memory") }
      return String(decoding: data, as: UTF8.self)
    }
    _ = try await fixture.load(transform, .keeping(.variants))
    fixture.restart()

    await #expect(throws: CacheError.self) { _ = try await fixture.load(transform, .policy(.cacheOnly)) }

    #expect(fixture.stored() == [transform.id])
    isShort.withLock { $0 = false }
    #expect(try await fixture.load(transform, .policy(.cacheOnly)).value == "AB")
  }

  @Test("a stored variant satisfies neither an HTTP request nor a load of bytes")
  func noResponse() async throws {
    let fixture = try ManagerFixture()
    fixture.network.serve(fixture.url) { _ in .ok("abcdefgh", cacheControl: "max-age=60") }
    _ = try await fixture.load(shop.short(), .keeping(.variants))
    fixture.restart()

    #expect(try await fixture.manager.contains(fixture.url) == false)
    #expect(try await fixture.manager.lookup(fixture.url) == .miss)
    #expect(
      await #expect(throws: CacheError.self) { _ = try await fixture.load(.bytes, .policy(.cacheOnly)) }?.code == .notCached)
    let told = try await fixture.send()
    #expect(told.text == "abcdefgh" && fixture.network.requests.count == 2)
  }

  @Test("a lookup states the layer that the value would come from")
  func lookup() async throws {
    let fixture = try ManagerFixture()
    fixture.network.respond(to: fixture.url, with: .ok("abcdefgh", cacheControl: "max-age=60"))
    let request = ResourceRequest(fixture.url)
    #expect(try await fixture.manager.lookup(request, as: shop.short()) == .miss)
    _ = try await fixture.load(shop.short(), .keeping(.variants))

    #expect(try await fixture.manager.lookup(request, as: shop.short()) == .memory(isFresh: true))
    fixture.restart()
    fixture.clock.advance(by: .seconds(61))
    #expect(try await fixture.manager.lookup(request, as: shop.short()) == .disk(isFresh: false))
    #expect(try await fixture.manager.lookup(request, as: shop.short(3)) == .miss)
    #expect(try await fixture.manager.lookup(request, as: shop.plain()) == .miss)
  }

  @Test("cacheOnly uses a stored variant, and fails for another transform")
  func cacheOnly() async throws {
    let fixture = try ManagerFixture()
    fixture.network.respond(to: fixture.url, with: .ok("abcdefgh", cacheControl: "max-age=60"))
    _ = try await fixture.load(shop.short(), .keeping(.variants))
    fixture.restart()
    fixture.clock.advance(by: .seconds(100))

    let old = try await fixture.load(shop.short(), .policy(.cacheOnly))

    #expect(old.value == "AB" && old.isStale && old.origins == "disk disk")
    let error = await #expect(throws: CacheError.self) { _ = try await fixture.load(shop.short(3), .policy(.cacheOnly)) }
    #expect(error?.code == .notCached)
  }

  @Test("an observer receives the origin of each value")
  func events() async throws {
    let fixture = try ManagerFixture()
    fixture.network.respond(to: fixture.url, with: .ok("abcdefgh", cacheControl: "max-age=60"))
    _ = try await fixture.load(shop.short(), .keeping(.variants))
    fixture.restart()
    _ = try await fixture.load(shop.short())

    let told = fixture.observer.events.compactMap { event in
      if case .transformed(let key, let origin, _) = event { "\(key == fixture.key(shop.short())) \(origin)" } else { nil }
    }
    #expect(told == ["true transformed", "true disk"])
    #expect(
      fixture.observer.events.contains { event in
        if case .stored(let key, .disk, let bytes, _) = event { key == fixture.key(shop.short()) && bytes == 4 } else { false }
      })
  }
}
