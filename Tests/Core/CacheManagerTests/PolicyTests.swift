import CacheCore
import CacheManager
import CacheTesting
import Foundation
import HTTPTypes
import MemoryStore
import Testing

@Suite("Load policies")
struct PolicyTests {
  @Test("standard uses a fresh response from memory, and after a restart from disk, without a request")
  func freshIsUsed() async throws {
    let fixture = try ManagerFixture()
    fixture.network.respond(to: fixture.url, with: .ok("bytes", etag: "\"1\"", cacheControl: "max-age=60"))

    let first = try await fixture.manager.load(fixture.url)
    let second = try await fixture.manager.load(fixture.url)
    fixture.restart()
    let third = try await fixture.manager.load(fixture.url)
    let fourth = try await fixture.manager.load(fixture.url)

    #expect([first, second, third, fourth].map(\.source) == [.network, .memory, .disk, .memory])
    #expect([first, second, third, fourth].allSatisfy { $0.text == "bytes" && $0.validation == .notAttempted })
    #expect(first.bytesOnWire == 5 && second.bytesOnWire == 0)
    try fixture.network.verify()
  }

  @Test("standard revalidates a stale response, and a 304 makes it fresh again in memory and on disk")
  func staleIsConfirmed() async throws {
    let fixture = try ManagerFixture()
    fixture.network.respond(
      to: fixture.url, with: .ok("bytes", etag: "\"1\"", cacheControl: "max-age=60"),
      .notModified(etag: "\"1\"", cacheControl: "max-age=60"))
    let first = try await fixture.manager.load(fixture.url)
    fixture.clock.advance(by: .seconds(61))

    let confirmed = try await fixture.manager.load(fixture.url)
    fixture.clock.advance(by: .seconds(59))
    let again = try await fixture.manager.load(fixture.url)
    fixture.restart()
    let fromDisk = try await fixture.manager.load(fixture.url)

    #expect(confirmed.source == .revalidated && confirmed.validation == .notModified && confirmed.text == "bytes")
    #expect(confirmed.revision == first.revision && confirmed.bytesOnWire == 0)
    #expect(again.source == .memory && fromDisk.source == .disk)
    #expect(fixture.network.requests.last?.headerFields[.ifNoneMatch] == "\"1\"")
    try fixture.network.verify()
  }

  @Test("standard replaces a stale response that has changed in every layer")
  func changedIsReplaced() async throws {
    let fixture = try ManagerFixture()
    fixture.network.respond(
      to: fixture.url, with: .ok("old", etag: "\"1\"", cacheControl: "max-age=60"),
      .ok("new", etag: "\"2\"", cacheControl: "max-age=60"))
    let old = try await fixture.manager.load(fixture.url)
    fixture.clock.advance(by: .seconds(61))

    let new = try await fixture.manager.load(fixture.url)
    fixture.restart()
    let fromDisk = try await fixture.manager.load(fixture.url)

    #expect(new.text == "new" && new.source == .network && new.validation == .modified && new.revision != old.revision)
    #expect(fromDisk.text == "new" && fromDisk.source == .disk)
    try fixture.network.verify()
  }

  @Test("standard revalidates a response without a stated lifetime each time")
  func unstatedLifetime() async throws {
    let fixture = try ManagerFixture()
    fixture.network.respond(to: fixture.url, with: .ok("bytes", etag: "\"1\""), .notModified(), .notModified())

    let sources = [
      try await fixture.manager.load(fixture.url), try await fixture.manager.load(fixture.url),
      try await fixture.manager.load(fixture.url),
    ].map(\.source)

    #expect(sources == [.network, .revalidated, .revalidated])
    try fixture.network.verify()
  }

  @Test("standard stores no response that must not be stored, in any layer")
  func noStore() async throws {
    let fixture = try ManagerFixture()
    fixture.network.respond(to: fixture.url, with: .ok("a", cacheControl: "no-store"), .ok("b", cacheControl: "no-store"))

    let first = try await fixture.manager.load(fixture.url)
    let second = try await fixture.manager.load(fixture.url)

    #expect(first.text == "a" && second.text == "b")
    #expect(fixture.disk.keys.isEmpty && fixture.memory.count == 0)
  }

  @Test("cacheFirst uses every stored response, even if it is stale, within its time to live")
  func cacheFirst() async throws {
    let fixture = try ManagerFixture()
    fixture.network.respond(
      to: fixture.url, with: .ok("bytes", etag: "\"1\"", cacheControl: "max-age=1"), .ok("later", etag: "\"2\""))
    let options = RequestOptions {
      $0.policy = .cacheFirst
      $0.expiration = .after(.seconds(3_600))
      $0.reads = .memory
    }
    _ = try await fixture.manager.load(fixture.url, options: options)
    fixture.clock.advance(by: .seconds(3_599))

    let stale = try await fixture.manager.load(fixture.url, options: options)
    fixture.clock.advance(by: .seconds(1))
    let expired = try await fixture.manager.load(fixture.url, options: options)

    #expect(stale.source == .memory && stale.isStale && stale.age == .seconds(3_599))
    #expect(expired.source == .network && expired.text == "later")
  }

  @Test("revalidate revalidates even a fresh response")
  func revalidate() async throws {
    let fixture = try ManagerFixture()
    fixture.network.respond(to: fixture.url, with: .ok("bytes", etag: "\"1\"", cacheControl: "max-age=600"), .notModified())
    _ = try await fixture.manager.load(fixture.url)

    let asked = try await fixture.manager.load(fixture.url, options: .policy(.revalidate()))

    #expect(asked.source == .revalidated && asked.validation == .notModified)
    try fixture.network.verify()
  }

  @Test("revalidate(atMostEvery:) sends no second request within the interval since the last confirmation")
  func revalidateAtMostEvery() async throws {
    let fixture = try ManagerFixture()
    fixture.network.respond(to: fixture.url, with: .ok("bytes", etag: "\"1\""), .notModified())
    let options = RequestOptions.policy(.revalidate(atMostEvery: .seconds(60)))

    var sources: [ResourceSource] = []
    for _ in 0..<4 {
      sources.append(try await fixture.manager.load(fixture.url, options: options).source)
      fixture.clock.advance(by: .seconds(30))
    }

    #expect(sources == [.network, .memory, .revalidated, .memory])
    try fixture.network.verify()
  }

  @Test("revalidate(showCachedAfter:) shows the stored response on a slow network, and stores the new one afterwards")
  func showCachedAfter() async throws {
    let fixture = try ManagerFixture()
    fixture.network.respond(to: fixture.url, with: .ok("old", etag: "\"1\""), .ok("newer", etag: "\"2\"").after(.seconds(10)))
    _ = try await fixture.manager.load(fixture.url)
    let options = RequestOptions.policy(.revalidate(showCachedAfter: .seconds(1)))

    async let shown = fixture.manager.load(fixture.url, options: options)
    await fixture.clock.sleepers(2)
    fixture.clock.advance(by: .seconds(1))
    let old = try await shown
    fixture.clock.advance(by: .seconds(9))
    await fixture.observer.first { if case .stored(_, .memory, 5, _) = $0 { true } else { false } }

    #expect(old.text == "old" && old.source == .memory && old.validation == .notAttempted)
    #expect(try await fixture.manager.load(fixture.url, options: .policy(.cacheOnly)).text == "newer")
  }

  @Test("reload does not read the cache, and stores the response")
  func reload() async throws {
    let fixture = try ManagerFixture()
    fixture.network.respond(
      to: fixture.url, with: .ok("old", etag: "\"1\"", cacheControl: "max-age=600"), .ok("new", cacheControl: "max-age=600"))
    _ = try await fixture.manager.load(fixture.url)

    let reloaded = try await fixture.manager.load(fixture.url, options: .policy(.reload))
    let stored = try await fixture.manager.load(fixture.url)

    #expect(reloaded.text == "new" && reloaded.source == .network)
    #expect(fixture.network.conditional == 0)
    #expect(stored.text == "new" && stored.source == .memory)
  }

  @Test("cacheOnly sends no request, and a miss is an error that says so")
  func cacheOnly() async throws {
    let fixture = try ManagerFixture()

    let error = try await fixture.failure(fixture.url, .policy(.cacheOnly))

    #expect(error.code == .notCached && error.url == fixture.url.absoluteString)
    #expect(fixture.network.requests.isEmpty)
  }

  @Test("memoryElseReload uses memory or the network, and does not read the disk")
  func memoryElseReload() async throws {
    let fixture = try ManagerFixture()
    fixture.network.respond(
      to: fixture.url, with: .ok("old", etag: "\"1\"", cacheControl: "max-age=600"), .ok("new", etag: "\"2\""))
    _ = try await fixture.manager.load(fixture.url)
    let inMemory = try await fixture.manager.load(fixture.url, options: .policy(.memoryElseReload))
    fixture.restart()
    let openedBefore = fixture.disk.opened

    let reloaded = try await fixture.manager.load(fixture.url, options: .policy(.memoryElseReload))

    #expect(inMemory.source == .memory)
    #expect(reloaded.source == .network && reloaded.text == "new")
    #expect(fixture.disk.opened == openedBefore && fixture.network.conditional == 0)
  }

  @Test("staleWhileRevalidate yields the stored value and then the fresh one")
  func staleWhileRevalidate() async throws {
    let fixture = try ManagerFixture()
    fixture.network.respond(
      to: fixture.url, with: .ok("old", etag: "\"1\"", cacheControl: "max-age=1"), .ok("new", etag: "\"2\""))
    _ = try await fixture.manager.load(fixture.url)
    fixture.clock.advance(by: .seconds(5))

    var stale: [String] = []
    var final: [Resource<Data>] = []
    for try await event in fixture.manager.events(for: fixture.url, options: .policy(.staleWhileRevalidate)) {
      switch event {
      case .progress: break
      case .stale(let resource): stale.append(resource.text)
      case .final(let resource): final.append(resource)
      }
    }

    #expect(stale == ["old"])
    #expect(final.map(\.text) == ["new"] && final.first?.validation == .modified)
    try fixture.network.verify()
  }

  @Test("staleWhileRevalidate returns the stored response, and its single revalidation outlives the caller")
  func backgroundRevalidation() async throws {
    let fixture = try ManagerFixture()
    let gate = Gate()
    fixture.network.respond(
      to: fixture.url, with: .ok("old", etag: "\"1\"", cacheControl: "max-age=1"), .ok("newer", etag: "\"2\"").held(by: gate))
    _ = try await fixture.manager.load(fixture.url)
    fixture.clock.advance(by: .seconds(5))

    let first = try await fixture.manager.load(fixture.url, options: .policy(.staleWhileRevalidate))
    await gate.arrived()
    let second = try await fixture.manager.load(fixture.url, options: .policy(.staleWhileRevalidate))
    gate.open()
    await fixture.observer.first { if case .stored(_, .memory, 5, _) = $0 { true } else { false } }
    await fixture.manager.close()

    #expect(first.text == "old" && second.text == "old" && first.isStale)
    #expect(fixture.network.requests.count == 2)
    #expect(fixture.disk.keys.count == 1)
  }

  @Test("without a validator a manager is a plain cache with a time to live")
  func plainCache() async throws {
    let fixture = try ManagerFixture { $0.validator = nil }
    fixture.network.respond(to: fixture.url, with: .ok("bytes", etag: "\"1\"", cacheControl: "max-age=1"))
    _ = try await fixture.manager.load(fixture.url)
    fixture.clock.advance(by: .seconds(1_000_000))

    #expect(try await fixture.manager.load(fixture.url).source == .memory)
    try fixture.network.verify()
  }

  @Test(
    "a stored response is shown, marked as not validated, if no origin responds",
    arguments: [LoadPolicy.standard, .revalidate()])
  func offline(_ policy: LoadPolicy) async throws {
    let fixture = try ManagerFixture()
    fixture.network.respond(to: fixture.url, with: .ok("bytes", etag: "\"1\""), .failure(.offline))
    _ = try await fixture.manager.load(fixture.url)

    let shown = try await fixture.manager.load(fixture.url, options: .policy(policy))

    #expect(shown.text == "bytes" && shown.source == .memory && shown.validation == .failed && shown.isStale)
  }

  @Test("must-revalidate forbids a stale response if no origin responds")
  func offlineForbidden() async throws {
    let fixture = try ManagerFixture()
    fixture.network.respond(
      to: fixture.url, with: .ok("bytes", etag: "\"1\"", cacheControl: "max-age=0, must-revalidate"), .failure(.offline))
    _ = try await fixture.manager.load(fixture.url)

    #expect(try await fixture.failure(fixture.url).code == .offline)
  }
}
