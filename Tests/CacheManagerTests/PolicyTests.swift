import CacheCore
import CacheManager
import CacheTesting
import Foundation
import HTTPTypes
import MemoryStore
import Testing

@Suite("Load policies")
struct PolicyTests {
  @Test("standard: a fresh answer is used from memory, and after a restart from disk, without a request")
  func freshIsUsed() async throws {
    let house = try House()
    house.network.answer(house.url, .ok("bytes", etag: "\"1\"", cacheControl: "max-age=60"))

    let first = try await house.manager.load(house.url)
    let second = try await house.manager.load(house.url)
    house.restart()
    let third = try await house.manager.load(house.url)
    let fourth = try await house.manager.load(house.url)

    #expect([first, second, third, fourth].map(\.source) == [.network, .memory, .disk, .memory])
    #expect([first, second, third, fourth].allSatisfy { $0.text == "bytes" && $0.validation == .notAttempted })
    #expect(first.bytesOnWire == 5 && second.bytesOnWire == 0)
    try house.network.verify()
  }

  @Test("standard: a stale answer is confirmed by a 304 that restarts its freshness, in memory and on disk")
  func staleIsConfirmed() async throws {
    let house = try House()
    house.network.answer(
      house.url, .ok("bytes", etag: "\"1\"", cacheControl: "max-age=60"), .notModified(etag: "\"1\"", cacheControl: "max-age=60"))
    let first = try await house.manager.load(house.url)
    house.clock.advance(by: .seconds(61))

    let confirmed = try await house.manager.load(house.url)
    house.clock.advance(by: .seconds(59))
    let again = try await house.manager.load(house.url)
    house.restart()
    let fromDisk = try await house.manager.load(house.url)

    #expect(confirmed.source == .revalidated && confirmed.validation == .notModified && confirmed.text == "bytes")
    #expect(confirmed.revision == first.revision && confirmed.bytesOnWire == 0)
    #expect(again.source == .memory && fromDisk.source == .disk)
    #expect(house.network.requests.last?.headerFields[.ifNoneMatch] == "\"1\"")
    try house.network.verify()
  }

  @Test("standard: same URL, new picture: a stale answer that has changed is replaced everywhere")
  func changedIsReplaced() async throws {
    let house = try House()
    house.network.answer(
      house.url, .ok("old", etag: "\"1\"", cacheControl: "max-age=60"), .ok("new", etag: "\"2\"", cacheControl: "max-age=60"))
    let old = try await house.manager.load(house.url)
    house.clock.advance(by: .seconds(61))

    let new = try await house.manager.load(house.url)
    house.restart()
    let fromDisk = try await house.manager.load(house.url)

    #expect(new.text == "new" && new.source == .network && new.validation == .modified && new.revision != old.revision)
    #expect(fromDisk.text == "new" && fromDisk.source == .disk)
    try house.network.verify()
  }

  @Test("standard: an answer that states no lifetime is revalidated each time, never guessed fresh")
  func unstatedLifetime() async throws {
    let house = try House()
    house.network.answer(house.url, .ok("bytes", etag: "\"1\""), .notModified(), .notModified())

    let sources = [
      try await house.manager.load(house.url), try await house.manager.load(house.url), try await house.manager.load(house.url),
    ].map(\.source)

    #expect(sources == [.network, .revalidated, .revalidated])
    try house.network.verify()
  }

  @Test("standard: what must not be stored is not stored, in no layer")
  func noStore() async throws {
    let house = try House()
    house.network.answer(house.url, .ok("a", cacheControl: "no-store"), .ok("b", cacheControl: "no-store"))

    let first = try await house.manager.load(house.url)
    let second = try await house.manager.load(house.url)

    #expect(first.text == "a" && second.text == "b")
    #expect(house.disk.keys.isEmpty && house.memory.count == 0)
  }

  @Test("cacheFirst: whatever is stored is used, however stale; the store's own time to live ends that")
  func cacheFirst() async throws {
    let house = try House()
    house.network.answer(house.url, .ok("bytes", etag: "\"1\"", cacheControl: "max-age=1"), .ok("later", etag: "\"2\""))
    let options = RequestOptions {
      $0.policy = .cacheFirst
      $0.expiration = .after(.seconds(3_600))
      $0.reads = .memory
    }
    _ = try await house.manager.load(house.url, options: options)
    house.clock.advance(by: .seconds(3_599))

    let stale = try await house.manager.load(house.url, options: options)
    house.clock.advance(by: .seconds(1))
    let expired = try await house.manager.load(house.url, options: options)

    #expect(stale.source == .memory && stale.isStale && stale.age == .seconds(3_599))
    #expect(expired.source == .network && expired.text == "later")
  }

  @Test("revalidate: even a fresh answer is asked about")
  func revalidate() async throws {
    let house = try House()
    house.network.answer(house.url, .ok("bytes", etag: "\"1\"", cacheControl: "max-age=600"), .notModified())
    _ = try await house.manager.load(house.url)

    let asked = try await house.manager.load(house.url, options: .policy(.revalidate()))

    #expect(asked.source == .revalidated && asked.validation == .notModified)
    try house.network.verify()
  }

  @Test("revalidate(atMostEvery:): not again within the floor, counted from the last confirmation")
  func revalidateAtMostEvery() async throws {
    let house = try House()
    house.network.answer(house.url, .ok("bytes", etag: "\"1\""), .notModified())
    let options = RequestOptions.policy(.revalidate(atMostEvery: .seconds(60)))

    var sources: [ResourceSource] = []
    for _ in 0..<4 {
      sources.append(try await house.manager.load(house.url, options: options).source)
      house.clock.advance(by: .seconds(30))
    }

    #expect(sources == [.network, .memory, .revalidated, .memory])
    try house.network.verify()
  }

  @Test("revalidate(showCachedAfter:): a slow network shows the stored answer, and its own answer is stored behind it")
  func showCachedAfter() async throws {
    let house = try House()
    house.network.answer(house.url, .ok("old", etag: "\"1\""), .ok("newer", etag: "\"2\"").after(.seconds(10)))
    _ = try await house.manager.load(house.url)
    let options = RequestOptions.policy(.revalidate(showCachedAfter: .seconds(1)))

    async let shown = house.manager.load(house.url, options: options)
    await house.clock.sleepers(2)
    house.clock.advance(by: .seconds(1))
    let old = try await shown
    house.clock.advance(by: .seconds(9))
    await house.observer.first { if case .stored(_, .memory, 5) = $0 { true } else { false } }

    #expect(old.text == "old" && old.source == .memory && old.validation == .notAttempted)
    #expect(try await house.manager.load(house.url, options: .policy(.cacheOnly)).text == "newer")
  }

  @Test("reload: the cache is not read, the answer is stored")
  func reload() async throws {
    let house = try House()
    house.network.answer(
      house.url, .ok("old", etag: "\"1\"", cacheControl: "max-age=600"), .ok("new", cacheControl: "max-age=600"))
    _ = try await house.manager.load(house.url)

    let reloaded = try await house.manager.load(house.url, options: .policy(.reload))
    let stored = try await house.manager.load(house.url)

    #expect(reloaded.text == "new" && reloaded.source == .network)
    #expect(house.network.conditional == 0)
    #expect(stored.text == "new" && stored.source == .memory)
  }

  @Test("cacheOnly: never a request; a miss is an error that says so")
  func cacheOnly() async throws {
    let house = try House()

    let error = try await house.failure(house.url, .policy(.cacheOnly))

    #expect(error.code == .notCached && error.url == house.url.absoluteString)
    #expect(house.network.requests.isEmpty)
  }

  @Test("memoryElseReload: memory, else the network; the disk is not read")
  func memoryElseReload() async throws {
    let house = try House()
    house.network.answer(house.url, .ok("old", etag: "\"1\"", cacheControl: "max-age=600"), .ok("new", etag: "\"2\""))
    _ = try await house.manager.load(house.url)
    let inMemory = try await house.manager.load(house.url, options: .policy(.memoryElseReload))
    house.restart()
    let openedBefore = house.disk.opened

    let reloaded = try await house.manager.load(house.url, options: .policy(.memoryElseReload))

    #expect(inMemory.source == .memory)
    #expect(reloaded.source == .network && reloaded.text == "new")
    #expect(house.disk.opened == openedBefore && house.network.conditional == 0)
  }

  @Test("staleWhileRevalidate: the stream yields the stored value, then the fresh one")
  func staleWhileRevalidate() async throws {
    let house = try House()
    house.network.answer(house.url, .ok("old", etag: "\"1\"", cacheControl: "max-age=1"), .ok("new", etag: "\"2\""))
    _ = try await house.manager.load(house.url)
    house.clock.advance(by: .seconds(5))

    var stale: [String] = []
    var final: [Resource<Data>] = []
    for try await event in house.manager.events(for: house.url, options: .policy(.staleWhileRevalidate)) {
      switch event {
      case .progress: break
      case .stale(let resource): stale.append(resource.text)
      case .final(let resource): final.append(resource)
      }
    }

    #expect(stale == ["old"])
    #expect(final.map(\.text) == ["new"] && final.first?.validation == .modified)
    try house.network.verify()
  }

  @Test("staleWhileRevalidate: one answer is the stored one, and the revalidation survives the caller, once")
  func backgroundRevalidation() async throws {
    let house = try House()
    let gate = Gate()
    house.network.answer(
      house.url, .ok("old", etag: "\"1\"", cacheControl: "max-age=1"), .ok("newer", etag: "\"2\"").held(by: gate))
    _ = try await house.manager.load(house.url)
    house.clock.advance(by: .seconds(5))

    let first = try await house.manager.load(house.url, options: .policy(.staleWhileRevalidate))
    await gate.arrived()
    let second = try await house.manager.load(house.url, options: .policy(.staleWhileRevalidate))
    gate.open()
    await house.observer.first { if case .stored(_, .memory, 5) = $0 { true } else { false } }
    await house.manager.close()

    #expect(first.text == "old" && second.text == "old" && first.isStale)
    #expect(house.network.requests.count == 2)
    #expect(house.disk.keys.count == 1)
  }

  @Test("without a validator a manager is a plain cache with a time to live")
  func plainCache() async throws {
    let house = try House { $0.validator = nil }
    house.network.answer(house.url, .ok("bytes", etag: "\"1\"", cacheControl: "max-age=1"))
    _ = try await house.manager.load(house.url)
    house.clock.advance(by: .seconds(1_000_000))

    #expect(try await house.manager.load(house.url).source == .memory)
    try house.network.verify()
  }

  @Test(
    "when nobody can be asked the stored answer is shown, marked as not validated",
    arguments: [LoadPolicy.standard, .revalidate()])
  func offline(_ policy: LoadPolicy) async throws {
    let house = try House()
    house.network.answer(house.url, .ok("bytes", etag: "\"1\""), .failure(.offline))
    _ = try await house.manager.load(house.url)

    let shown = try await house.manager.load(house.url, options: .policy(policy))

    #expect(shown.text == "bytes" && shown.source == .memory && shown.validation == .failed && shown.isStale)
  }

  @Test("must-revalidate forbids that")
  func offlineForbidden() async throws {
    let house = try House()
    house.network.answer(
      house.url, .ok("bytes", etag: "\"1\"", cacheControl: "max-age=0, must-revalidate"), .failure(.offline))
    _ = try await house.manager.load(house.url)

    #expect(try await house.failure(house.url).code == .offline)
  }
}
