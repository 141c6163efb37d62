import CacheCore
import CacheManager
import CacheTesting
import ETagValidation
import Foundation
import HTTPTypes
import MemoryStore
import Testing

/// A call that returns the text of a resource.
struct ResourceCall: Sendable, CustomTestStringConvertible {
  var testDescription: String
  var text: @Sendable (ManagerFixture, RequestOptions) async throws -> String

  static let all =
    LoadForm.all.map { form in
      ResourceCall(testDescription: form.testDescription) { fixture, options in
        try await form.load(fixture.manager, fixture.url, options).text
      }
    } + [
      ResourceCall(testDescription: "value") { fixture, options in
        try await fixture.manager.load(fixture.url, as: TextTransformFixture().whole, options: options).value
      },
      ResourceCall(testDescription: "stored value") { fixture, options in
        let transform = TextTransformFixture().short(1)
        return try await fixture.manager.load(fixture.url, as: transform, options: options).value
      },
      ResourceCall(testDescription: "file") { fixture, options in
        let folder = try DownloadFolder()
        _ = try await fixture.manager.load(fixture.url, to: folder.file("a"), options: options)
        return String(decoding: try Data(contentsOf: folder.file("a")), as: UTF8.self)
      },
      ResourceCall(testDescription: "response") { fixture, options in try await fixture.send(options: options).text },
      ResourceCall(testDescription: "prefetch") { fixture, options in
        _ = await fixture.manager.prefetch([fixture.url], options: options)
        return try await fixture.manager.load(fixture.url, options: options).text
      },
      ResourceCall(testDescription: "prefetch into disk") { fixture, options in
        _ = await fixture.manager.prefetch([fixture.url], into: .disk, options: options)
        return try await fixture.manager.load(fixture.url, options: options).text
      },
      ResourceCall(testDescription: "lookup without waiting, then load") { fixture, options in
        if let hit = fixture.manager.cachedInMemory(fixture.url, options: options) { return hit.text }
        return try await fixture.manager.load(fixture.url, options: options).text
      },
    ]
}

@Suite("Requests with another durable store")
struct SeparateStoreTests {
  let fixture: ManagerFixture
  let other = VolatileStore()
  private var separate: RequestOptions { RequestOptions { [other] in $0.store = .use(other) } }

  init() throws {
    fixture = try ManagerFixture()
    let count = Counter()
    fixture.network.serve(fixture.url) { _ in
      count.increment()
      return .ok(Data([UInt8(ascii: "@") + UInt8(count.value)]), cacheControl: "max-age=60")
    }
  }

  @Test("stores separate the requests that name them, in each form", arguments: ResourceCall.all)
  func tenants(_ call: ResourceCall) async throws {
    let another = RequestOptions { $0.store = .use(VolatileStore()) }

    #expect(try await call.text(fixture, separate) == "A")
    #expect(try await call.text(fixture, another) == "B")
    #expect(try await call.text(fixture, RequestOptions()) == "C")
    #expect(try await call.text(fixture, separate) == "A")
    #expect(try await call.text(fixture, another) == "B")
  }

  @Test("a request with another store writes nothing to the manager's memory", arguments: ResourceCall.all)
  func writes(_ call: ResourceCall) async throws {
    _ = try await call.text(fixture, separate)

    #expect(fixture.memory.count == 0 && fixture.disk.keys.isEmpty && !other.keys.isEmpty)
  }

  @Test("lookups and removals with another store do not concern the manager's memory")
  func lookups() async throws {
    _ = try await fixture.manager.load(fixture.url)

    #expect(fixture.manager.cachedInMemory(fixture.url, options: separate) == nil)
    #expect(try await fixture.manager.lookup(fixture.url, options: separate) == .miss)
    #expect(try await fixture.manager.lookup(fixture.url, as: TextTransformFixture().whole, options: separate) == .miss)
    #expect(try await !fixture.manager.contains(fixture.url, options: separate))
    try await fixture.manager.remove(fixture.url, options: separate)
    #expect(fixture.manager.cachedInMemory(fixture.url)?.text == "A")
  }

  @Test("bytes that are stored for another store reach neither the manager's memory nor its store")
  func storing() async throws {
    try await fixture.manager.store(Data("own".utf8), for: fixture.url, options: separate)

    #expect(try await fixture.manager.load(fixture.url, options: separate).text == "own")
    #expect(fixture.memory.count == 0 && fixture.disk.keys.isEmpty)
    #expect(try await fixture.manager.load(fixture.url).text == "A")
  }

  @Test("a revalidation in the background does not write to the manager's memory", arguments: [false, true])
  func background(isLoad: Bool) async throws {
    let fixture = try ManagerFixture()
    let cacheControl = "max-age=1, stale-while-revalidate=60"
    fixture.network.respond(
      to: fixture.url, with: .ok("a", etag: "\"1\"", cacheControl: cacheControl),
      .notModified(etag: "\"1\"", cacheControl: cacheControl))
    _ = try await fixture.manager.load(fixture.url, options: separate)
    fixture.clock.advance(by: .seconds(2))

    if isLoad {
      for try await _ in fixture.manager.events(for: fixture.url, options: separate) {}
    } else {
      _ = try await fixture.send(options: separate)
    }
    try await Polling.until { fixture.observer.events.contains { if case .revalidated = $0 { true } else { false } } }
    await fixture.manager.close()

    #expect(fixture.network.requests.count == 2 && fixture.memory.count == 0)
  }

  @Test("simultaneous requests with different stores are not coalesced", arguments: [false, true])
  func coalescing(isLoad: Bool) async throws {
    let (fixture, gate, count) = (try ManagerFixture(), Gate(), Counter())
    fixture.network.serve(fixture.url) { _ in
      count.increment()
      return .ok("\(count.value)", cacheControl: "max-age=60").held(by: gate)
    }
    @Sendable func text(_ options: RequestOptions) async throws -> String {
      if isLoad { return try await fixture.manager.load(fixture.url, options: options).text }
      return try await fixture.send(options: options).text
    }

    async let one = text(RequestOptions())
    async let two = text(separate)
    await gate.arrived(2)
    gate.open()

    #expect(try await Set([one, two]) == ["1", "2"])
  }

  @Test("a memory store that is given too is used")
  func ownMemory() async throws {
    let memory = MemoryCache(clock: fixture.clock)
    var options = separate
    options.memory = .use(memory)

    _ = try await fixture.manager.load(fixture.url, options: options)

    #expect(fixture.manager.cachedInMemory(fixture.url, options: options)?.text == "A")
    #expect(memory.count > 0 && fixture.memory.count == 0)
  }

  @Test("the manager's memory store is used with another store if the request names it")
  func namedMemory() async throws {
    var options = separate
    options.memory = .use(fixture.memory)

    _ = try await fixture.manager.load(fixture.url, options: options)

    #expect(fixture.manager.cachedInMemory(fixture.url, options: options)?.text == "A")
  }

  @Test("an adapted memory store is not the manager's if the request has another store")
  func adaptedMemory() async throws {
    var options = separate
    options.memory = .adapted { $0 }

    _ = try await fixture.manager.load(fixture.url, options: options)

    #expect(fixture.memory.count == 0)
  }

  @Test("the manager's own store and no store keep the manager's memory")
  func sameStore() async throws {
    let own: [Override<any CacheStore>] = [.use(fixture.disk), .adapted { $0 }, .disabled]
    _ = try await fixture.manager.load(fixture.url)

    for store in own {
      let options = RequestOptions { $0.store = store }
      #expect(fixture.manager.cachedInMemory(fixture.url, options: options)?.text == "A")
      #expect(try await fixture.manager.load(fixture.url, options: options).source == .memory)
      #expect(try await fixture.send(options: options).text == "A")
    }
    #expect(fixture.network.requests.count == 1)
  }

  @Test("a store that replaces the manager's in a closure separates the request too")
  func adapted() async throws {
    _ = try await fixture.manager.load(fixture.url)

    let options = RequestOptions { [other] in $0.store = .adapted { _ in other } }

    #expect(try await fixture.manager.load(fixture.url, options: options).text == "B")
    #expect(fixture.manager.cachedInMemory(fixture.url)?.text == "A")
  }

  @Test("a store that is given to a request of a manager without one separates it from the manager's memory")
  func onlyMemory() async throws {
    let fixture = try ManagerFixture { $0.store = nil }
    fixture.network.respond(to: fixture.url, with: .ok("a", cacheControl: "max-age=60"), .ok("b", cacheControl: "max-age=60"))

    #expect(try await fixture.manager.load(fixture.url).text == "a")
    #expect(try await fixture.manager.load(fixture.url, options: separate).text == "b")
    #expect(try await fixture.manager.load(fixture.url).text == "a")
  }
}
