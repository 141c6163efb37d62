import CacheCore
import CacheManager
import CacheTesting
import Foundation
import HTTPTypes
import MemoryStore
import Testing

@Suite("A stored variant and its original")
struct VariantRevisionTests {
  private let shop = Workshop()

  @Test("a 304 keeps the variant: asked by the original's validators, served, and fresh again in memory and on disk")
  func confirmed() async throws {
    let house = try House()
    house.network.answer(
      house.url, .ok("abcdefgh", etag: "\"1\"", cacheControl: "max-age=60"), .notModified(cacheControl: "max-age=60"))
    _ = try await house.load(shop.short(), .keeping(.variants))
    house.restart()
    house.clock.advance(by: .seconds(100))

    let confirmed = try await house.load(shop.short())

    #expect(confirmed.value == "AB" && confirmed.origins == "revalidated disk" && confirmed.validation == .notModified)
    #expect(house.network.requests.last?.headerFields[.ifNoneMatch] == "\"1\"")
    #expect(try await house.load(shop.short()).origins == "memory memory")
    house.restart()
    #expect(try await house.load(shop.short()).origins == "disk disk")
    #expect(shop.decoded.value == 1)
    try house.network.verify()
  }

  @Test("a changed original brings a new variant, in place of the old one", arguments: [StoragePolicy.variants, .all])
  func changed(_ policy: StoragePolicy) async throws {
    let house = try House()
    house.network.answer(
      house.url, .ok("abcdefgh", etag: "\"1\"", cacheControl: "max-age=60"),
      .ok("uvwxyz", etag: "\"2\"", cacheControl: "max-age=60"))
    _ = try await house.load(shop.short(), .keeping(policy))
    house.restart()
    house.clock.advance(by: .seconds(100))

    let changed = try await house.load(shop.short(), .keeping(policy))
    house.restart()

    #expect(changed.value == "UV" && changed.origins == "network transformed" && house.network.conditional == 1)
    #expect(try await house.load(shop.short()).value == "UV")
    #expect(house.stored().filter { !$0.isEmpty } == [shop.short().id])
  }

  @Test("a changed original drops every variant that is stored, also those that nobody asks for", arguments: [true, false])
  func dropped(_ originalIsStored: Bool) async throws {
    let house = try House()
    house.network.answer(
      house.url, .ok("abcdefgh", etag: "\"1\"", cacheControl: "max-age=60"),
      .ok("uvwxyz", etag: "\"2\"", cacheControl: "max-age=60"))
    _ = try await house.load(shop.short(), .keeping(originalIsStored ? .all : .variants))
    if originalIsStored { _ = try await house.load(shop.short(3), .keeping(.all)) }
    house.restart()
    house.clock.advance(by: .seconds(100))

    _ = try await house.manager.load(house.url)

    #expect(house.stored() == [""])
    try house.network.verify()
  }

  @Test("what a variant was made of counts, not what stands beside it: one of another body is a miss, and removed")
  func otherRevision() async throws {
    let house = try House()
    house.network.answer(house.url, .ok("abcdefgh", cacheControl: "max-age=60"))
    _ = try await house.load(shop.short(), .keeping(.originals))
    let original = try #require(try await house.disk.variants(of: house.url.absoluteString).first)
    var other = original.metadata
    other.revision = .random()
    try await house.disk.store(Data("<XX>".utf8), for: house.key(shop.short()), metadata: other)
    house.restart()

    let made = try await house.load(shop.short(), .keeping(.originals))

    #expect(made.value == "AB" && made.origins == "disk transformed")
    #expect(house.stored() == [""])
  }

  @Test("a 304 to a load of bytes is the variants' too")
  func confirmedElsewhere() async throws {
    let house = try House()
    house.network.answer(
      house.url, .ok("abcdefgh", etag: "\"1\"", cacheControl: "max-age=60"), .notModified(cacheControl: "max-age=60"))
    let options = RequestOptions.keeping(.all) { $0.expiration = .after(.seconds(150)) }
    _ = try await house.load(shop.short(), options)
    house.clock.advance(by: .seconds(100))
    house.restart()
    #expect(try await house.manager.load(house.url, options: options).source == .revalidated)

    #expect(try await house.load(shop.short(), RequestOptions { $0.reads = .disk }).origins == "disk disk")
    // The original goes, and the variant has its word.
    try await house.disk.remove(CacheKey(resource: house.url.absoluteString), ifRevision: nil)
    house.restart()
    house.clock.advance(by: .seconds(55))
    let alone = try await house.load(shop.short())

    #expect(alone.origins == "disk disk" && alone.age == .seconds(55) && alone.isStale == false)
  }

  @Test("a 304 freshens the stored variant also where the bytes, or the value, are in memory")
  func confirmedBesideMemory() async throws {
    let house = try House()
    house.network.answer(
      house.url, .ok("abcdefgh", etag: "\"1\"", cacheControl: "max-age=60"), .notModified(cacheControl: "max-age=60"))
    _ = try await house.load(shop.short(), .keeping(.variants))
    house.clock.advance(by: .seconds(100))

    #expect(try await house.load(shop.short()).origins == "revalidated memory")
    house.restart()

    #expect(try await house.load(shop.short()).origins == "disk disk")
    try house.network.verify()
  }

  @Test("the old variant now, the new one when it is there (stale-while-revalidate)")
  func staleWhileRevalidate() async throws {
    let house = try House()
    house.network.answer(
      house.url, .ok("abcdefgh", etag: "\"1\"", cacheControl: "max-age=60"),
      .ok("uvwxyz", etag: "\"2\"", cacheControl: "max-age=60"))
    _ = try await house.load(shop.short(), .keeping(.variants))
    house.restart()
    house.clock.advance(by: .seconds(100))

    var seen: [String] = []
    let request = ResourceRequest(house.url, options: .keeping(.variants) { $0.policy = .staleWhileRevalidate })
    for try await event in house.manager.events(for: request, as: shop.short()) {
      switch event {
      case .progress: break
      case .stale(let old): seen.append("\(old.value) \(old.origins)")
      case .final(let new): seen.append("\(new.value) \(new.origins)")
      }
    }

    #expect(seen == ["AB disk disk", "UV network transformed"])
  }

  @Test("nobody answers: the stored variant stands in, unless its origin forbids that", arguments: [true, false])
  func offline(_ mayStandIn: Bool) async throws {
    let house = try House()
    let cacheControl = mayStandIn ? "max-age=60" : "max-age=60, must-revalidate"
    house.network.answer(house.url, .ok("abcdefgh", etag: "\"1\"", cacheControl: cacheControl), .failure(.offline))
    _ = try await house.load(shop.short(), .keeping(.variants))
    house.restart()
    house.clock.advance(by: .seconds(100))

    if mayStandIn {
      let old = try await house.load(shop.short())
      #expect(old.value == "AB" && old.validation == .failed && old.origins == "disk disk")
    } else {
      let error = await #expect(throws: CacheError.self) { _ = try await house.load(shop.short()) }
      #expect(error?.code == .offline)
    }
  }

  @Test("what is removed, cleared, purged or made outdated by an unsafe request goes in every form", arguments: 0..<5)
  func removed(_ way: Int) async throws {
    let house = try House()
    house.network.serve(house.url) { request in
      request.method == .post ? .ok("done") : .ok("abcdefgh", cacheControl: "max-age=60", fields: .field("Cache-Tag", "t"))
    }
    _ = try await house.load(shop.short(), .keeping(.variants))
    house.restart()

    switch way {
    case 0: try await house.manager.remove(house.url)
    case 1: try await house.manager.clear()
    case 2: #expect(try await house.manager.purge(.url(house.url)) == 1)
    case 3: #expect(try await house.manager.purge(.tag("t")) == 1)
    default: _ = try await house.manager.load(ResourceRequest(house.url, method: .post))
    }

    #expect(house.stored().isEmpty)
    #expect(try await house.load(shop.short()).origins == "network transformed")
  }

  @Test("a soft purge while a value is made leaves the original its own length")
  func softMeanwhile() async throws {
    let (house, gate) = (try House(), Gate())
    house.network.answer(
      house.url, .ok("abcdefgh", etag: "\"1\"", cacheControl: "max-age=60").bodyHeld(by: gate),
      .notModified(etag: "\"1\"", cacheControl: "max-age=60"))
    let late = Task { try await house.load(shop.short(), .keeping(.all)).value }
    await gate.arrived()
    try await house.manager.purge(.url(house.url), .soft)
    gate.open()
    #expect(try await late.value == "AB")

    #expect(try await house.ask().text == "abcdefgh")
    let part = try await house.ask([.range: "bytes=5-7"])
    #expect(part.status == 206 && part.text == "fgh" && part.fields[.contentRange] == "bytes 5-7/8")
    try house.network.verify()
  }

  @Test("a soft purge: the variant is asked about at its next use", arguments: [true, false])
  func softPurge(_ byURL: Bool) async throws {
    let house = try House()
    house.network.answer(
      house.url, .ok("abcdefgh", etag: "\"1\"", cacheControl: "max-age=60"), .notModified(cacheControl: "max-age=60"))
    _ = try await house.load(shop.short(), .keeping(.variants))
    house.restart()

    #expect(try await house.manager.purge(byURL ? .url(house.url) : .everything, .soft) == 1)

    #expect(try await house.load(shop.short()).origins == "revalidated disk")
    try house.network.verify()
  }

  @Test("a value that is being made when its resource is removed is handed over and not stored", arguments: [true, false])
  func removedMeanwhile(_ purges: Bool) async throws {
    let house = try House()
    house.network.serve(house.url) { _ in .ok("abcdefgh", cacheControl: "max-age=60") }
    let gate = Gate()
    let transform = shop.coded(
      ResourceTransform<String>(id: "slow", cost: { $0.utf8.count }) { body, _ throws(CacheError) in
        await gate.pass()
        return String(decoding: try await body.collect(), as: UTF8.self)
      })
    let load = Task { try await house.load(transform, .keeping(.variants)) }
    await gate.arrived()

    if purges { try await house.manager.purge(.url(house.url)) } else { try await house.manager.remove(house.url) }
    gate.open()

    #expect(try await load.value.value == "abcdefgh")
    #expect(house.stored().isEmpty && shop.encoded.value == 1)
    // Not even for a moment.
    #expect(!house.observer.events.contains { if case .stored(_, .disk, _) = $0 { true } else { false } })
  }

  @Test("a value made of an older body does not take the place of a later one's")
  func olderWord() async throws {
    let house = try House { $0.memory = nil }
    house.network.answer(
      house.url, .ok("old", cacheControl: "max-age=60"), .ok("new", cacheControl: "max-age=60"))
    let gate = Gate()
    let transform = shop.coded(
      ResourceTransform<String>(id: "slow", cost: { $0.utf8.count }) { body, _ throws(CacheError) in
        let text = String(decoding: try await body.collect(), as: UTF8.self)
        if text == "old" { await gate.pass() }
        return text
      })
    let slow = Task { try await house.load(transform, .keeping(.variants)) }
    await gate.arrived()
    house.clock.advance(by: .seconds(1))
    #expect(try await house.load(transform, .keeping(.variants) { $0.policy = .reload }).value == "new")

    gate.open()

    #expect(try await slow.value.value == "old")
    #expect(try await house.load(transform).value == "new")
  }
}
