import CacheCore
import CacheManager
import CacheTesting
import Foundation
import HTTPTypes
import MemoryStore
import Testing

@Suite("Stored variants and their originals")
struct VariantRevisionTests {
  private let shop = TextTransformFixture()

  @Test("a 304 to the original's validators keeps the variant, which is served and fresh again in memory and on disk")
  func confirmed() async throws {
    let fixture = try ManagerFixture()
    fixture.network.respond(
      to: fixture.url, with: .ok("abcdefgh", etag: "\"1\"", cacheControl: "max-age=60"), .notModified(cacheControl: "max-age=60"))
    _ = try await fixture.load(shop.short(), .keeping(.variants))
    fixture.restart()
    fixture.clock.advance(by: .seconds(100))

    let confirmed = try await fixture.load(shop.short())

    #expect(confirmed.value == "AB" && confirmed.origins == "revalidated disk" && confirmed.validation == .notModified)
    #expect(fixture.network.requests.last?.headerFields[.ifNoneMatch] == "\"1\"")
    #expect(try await fixture.load(shop.short()).origins == "memory memory")
    fixture.restart()
    #expect(try await fixture.load(shop.short()).origins == "disk disk")
    #expect(shop.decoded.value == 1)
    try fixture.network.verify()
  }

  @Test("a changed original leads to a new variant, which replaces the old one", arguments: [StoragePolicy.variants, .all])
  func changed(_ policy: StoragePolicy) async throws {
    let fixture = try ManagerFixture()
    fixture.network.respond(
      to: fixture.url, with: .ok("abcdefgh", etag: "\"1\"", cacheControl: "max-age=60"),
      .ok("uvwxyz", etag: "\"2\"", cacheControl: "max-age=60"))
    _ = try await fixture.load(shop.short(), .keeping(policy))
    fixture.restart()
    fixture.clock.advance(by: .seconds(100))

    let changed = try await fixture.load(shop.short(), .keeping(policy))
    fixture.restart()

    #expect(changed.value == "UV" && changed.origins == "network transformed" && fixture.network.conditional == 1)
    #expect(try await fixture.load(shop.short()).value == "UV")
    #expect(fixture.stored().filter { !$0.isEmpty } == [shop.short().id])
  }

  @Test("a changed original removes every stored variant, including those that no load requests", arguments: [true, false])
  func dropped(_ originalIsStored: Bool) async throws {
    let fixture = try ManagerFixture()
    fixture.network.respond(
      to: fixture.url, with: .ok("abcdefgh", etag: "\"1\"", cacheControl: "max-age=60"),
      .ok("uvwxyz", etag: "\"2\"", cacheControl: "max-age=60"))
    _ = try await fixture.load(shop.short(), .keeping(originalIsStored ? .all : .variants))
    if originalIsStored { _ = try await fixture.load(shop.short(3), .keeping(.all)) }
    fixture.restart()
    fixture.clock.advance(by: .seconds(100))

    _ = try await fixture.manager.load(fixture.url)

    #expect(fixture.stored() == [""])
    try fixture.network.verify()
  }

  @Test("after the clock was set back, a new value replaces the stored one", arguments: [StoragePolicy.variants, .all])
  func clockSetBack(_ policy: StoragePolicy) async throws {
    let fixture = try ManagerFixture()
    fixture.network.respond(
      to: fixture.url, with: .ok("abcdefgh", cacheControl: "max-age=6000"), .ok("uvwxyz", cacheControl: "max-age=6000"))
    _ = try await fixture.load(shop.short(), .keeping(policy))
    fixture.restart()
    fixture.clock.advance(by: .seconds(-3_600))

    _ = try await fixture.load(shop.short(), .keeping(policy) { $0.policy = .reload })
    fixture.restart()

    let stored = try await fixture.load(shop.short(), .keeping(policy))
    #expect(stored.value == "UV" && stored.origins == "disk disk")
    try fixture.network.verify()
  }

  @Test("a variant of another body is a miss, and is removed")
  func otherRevision() async throws {
    let fixture = try ManagerFixture()
    fixture.network.respond(to: fixture.url, with: .ok("abcdefgh", cacheControl: "max-age=60"))
    _ = try await fixture.load(shop.short(), .keeping(.originals))
    let original = try #require(try await fixture.disk.variants(of: fixture.url.absoluteString).first)
    var other = original.metadata
    other.revision = .random()
    try await fixture.disk.store(Data("<XX>".utf8), for: fixture.key(shop.short()), metadata: other)
    fixture.restart()

    let made = try await fixture.load(shop.short(), .keeping(.originals))

    #expect(made.value == "AB" && made.origins == "disk transformed")
    #expect(fixture.stored() == [""])
  }

  @Test("a 304 to a load of bytes also confirms the variants")
  func confirmedElsewhere() async throws {
    let fixture = try ManagerFixture()
    fixture.network.respond(
      to: fixture.url, with: .ok("abcdefgh", etag: "\"1\"", cacheControl: "max-age=60"), .notModified(cacheControl: "max-age=60"))
    let options = RequestOptions.keeping(.all) { $0.expiration = .after(.seconds(150)) }
    _ = try await fixture.load(shop.short(), options)
    fixture.clock.advance(by: .seconds(100))
    fixture.restart()
    #expect(try await fixture.manager.load(fixture.url, options: options).source == .revalidated)

    #expect(try await fixture.load(shop.short(), RequestOptions { $0.reads = .disk }).origins == "disk disk")
    // The original is removed, and the variant remains.
    try await fixture.disk.remove(CacheKey(resource: fixture.url.absoluteString), ifRevision: nil)
    fixture.restart()
    fixture.clock.advance(by: .seconds(55))
    let alone = try await fixture.load(shop.short())

    #expect(alone.origins == "disk disk" && alone.age == .seconds(55) && alone.isStale == false)
  }

  @Test("a 304 updates the stored variant even if the bytes or the value are in memory")
  func confirmedBesideMemory() async throws {
    let fixture = try ManagerFixture()
    fixture.network.respond(
      to: fixture.url, with: .ok("abcdefgh", etag: "\"1\"", cacheControl: "max-age=60"), .notModified(cacheControl: "max-age=60"))
    _ = try await fixture.load(shop.short(), .keeping(.variants))
    fixture.clock.advance(by: .seconds(100))

    #expect(try await fixture.load(shop.short()).origins == "revalidated memory")
    fixture.restart()

    #expect(try await fixture.load(shop.short()).origins == "disk disk")
    try fixture.network.verify()
  }

  @Test("staleWhileRevalidate returns the old variant first and then the new one")
  func staleWhileRevalidate() async throws {
    let fixture = try ManagerFixture()
    fixture.network.respond(
      to: fixture.url, with: .ok("abcdefgh", etag: "\"1\"", cacheControl: "max-age=60"),
      .ok("uvwxyz", etag: "\"2\"", cacheControl: "max-age=60"))
    _ = try await fixture.load(shop.short(), .keeping(.variants))
    fixture.restart()
    fixture.clock.advance(by: .seconds(100))

    var seen: [String] = []
    let request = ResourceRequest(fixture.url, options: .keeping(.variants) { $0.policy = .staleWhileRevalidate })
    for try await event in fixture.manager.events(for: request, as: shop.short()) {
      switch event {
      case .progress: break
      case .stale(let old): seen.append("\(old.value) \(old.origins)")
      case .final(let new): seen.append("\(new.value) \(new.origins)")
      }
    }

    #expect(seen == ["AB disk disk", "UV network transformed"])
  }

  @Test("the stored variant is served if no origin responds, unless its origin forbids that", arguments: [true, false])
  func offline(_ mayServeStale: Bool) async throws {
    let fixture = try ManagerFixture()
    let cacheControl = mayServeStale ? "max-age=60" : "max-age=60, must-revalidate"
    fixture.network.respond(to: fixture.url, with: .ok("abcdefgh", etag: "\"1\"", cacheControl: cacheControl), .failure(.offline))
    _ = try await fixture.load(shop.short(), .keeping(.variants))
    fixture.restart()
    fixture.clock.advance(by: .seconds(100))

    if mayServeStale {
      let old = try await fixture.load(shop.short())
      #expect(old.value == "AB" && old.validation == .failed && old.origins == "disk disk")
    } else {
      let error = await #expect(throws: CacheError.self) { _ = try await fixture.load(shop.short()) }
      #expect(error?.code == .offline)
    }
  }

  @Test("removing, clearing, purging and unsafe requests remove every variant", arguments: 0..<5)
  func removed(_ way: Int) async throws {
    let fixture = try ManagerFixture()
    fixture.network.serve(fixture.url) { request in
      request.method == .post ? .ok("done") : .ok("abcdefgh", cacheControl: "max-age=60", fields: .field("Cache-Tag", "t"))
    }
    _ = try await fixture.load(shop.short(), .keeping(.variants))
    fixture.restart()

    switch way {
    case 0: try await fixture.manager.remove(fixture.url)
    case 1: try await fixture.manager.clear()
    case 2: #expect(try await fixture.manager.purge(.url(fixture.url)) == 1)
    case 3: #expect(try await fixture.manager.purge(.tag("t")) == 1)
    default: _ = try await fixture.manager.load(ResourceRequest(fixture.url, method: .post))
    }

    #expect(fixture.stored().isEmpty)
    #expect(try await fixture.load(shop.short()).origins == "network transformed")
  }

  @Test("a soft purge while a value is made does not change the length of the original")
  func softMeanwhile() async throws {
    let (fixture, gate) = (try ManagerFixture(), Gate())
    fixture.network.respond(
      to: fixture.url, with: .ok("abcdefgh", etag: "\"1\"", cacheControl: "max-age=60").bodyHeld(by: gate),
      .notModified(etag: "\"1\"", cacheControl: "max-age=60"))
    let late = Task { try await fixture.load(shop.short(), .keeping(.all)).value }
    await gate.arrived()
    try await fixture.manager.purge(.url(fixture.url), .soft)
    gate.open()
    #expect(try await late.value == "AB")

    #expect(try await fixture.send().text == "abcdefgh")
    let part = try await fixture.send([.range: "bytes=5-7"])
    #expect(part.status == 206 && part.text == "fgh" && part.fields[.contentRange] == "bytes 5-7/8")
    try fixture.network.verify()
  }

  @Test("a soft purge marks the variant, which is revalidated at its next use", arguments: [true, false])
  func softPurge(_ byURL: Bool) async throws {
    let fixture = try ManagerFixture()
    fixture.network.respond(
      to: fixture.url, with: .ok("abcdefgh", etag: "\"1\"", cacheControl: "max-age=60"), .notModified(cacheControl: "max-age=60"))
    _ = try await fixture.load(shop.short(), .keeping(.variants))
    fixture.restart()

    #expect(try await fixture.manager.purge(byURL ? .url(fixture.url) : .everything, .soft) == 1)

    #expect(try await fixture.load(shop.short()).origins == "revalidated disk")
    try fixture.network.verify()
  }

  @Test("a value that is being made when its resource is removed is delivered and not stored", arguments: [true, false])
  func removedMeanwhile(_ purges: Bool) async throws {
    let fixture = try ManagerFixture()
    fixture.network.serve(fixture.url) { _ in .ok("abcdefgh", cacheControl: "max-age=60") }
    let gate = Gate()
    let transform = shop.coded(
      ResourceTransform<String>(id: "slow", cost: { $0.utf8.count }) { body, _ throws(CacheError) in
        await gate.pass()
        return String(decoding: try await body.collect(), as: UTF8.self)
      })
    let load = Task { try await fixture.load(transform, .keeping(.variants)) }
    await gate.arrived()

    if purges { try await fixture.manager.purge(.url(fixture.url)) } else { try await fixture.manager.remove(fixture.url) }
    gate.open()

    #expect(try await load.value.value == "abcdefgh")
    #expect(fixture.stored().isEmpty && shop.encoded.value == 1)
    // It is not stored even for a moment.
    #expect(!fixture.observer.events.contains { if case .stored(_, .disk, _, _) = $0 { true } else { false } })
  }

  @Test("a value of an older body does not replace that of a later one")
  func olderWord() async throws {
    let fixture = try ManagerFixture { $0.memory = nil }
    fixture.network.respond(
      to: fixture.url, with: .ok("old", cacheControl: "max-age=60"), .ok("new", cacheControl: "max-age=60"))
    let gate = Gate()
    let transform = shop.coded(
      ResourceTransform<String>(id: "slow", cost: { $0.utf8.count }) { body, _ throws(CacheError) in
        let text = String(decoding: try await body.collect(), as: UTF8.self)
        if text == "old" { await gate.pass() }
        return text
      })
    let slow = Task { try await fixture.load(transform, .keeping(.variants)) }
    await gate.arrived()
    fixture.clock.advance(by: .seconds(1))
    #expect(try await fixture.load(transform, .keeping(.variants) { $0.policy = .reload }).value == "new")

    gate.open()

    #expect(try await slow.value.value == "old")
    #expect(try await fixture.load(transform).value == "new")
  }
}
