import CacheCore
import CacheTesting
import Foundation
import HTTPTypes
import Testing

@testable import CacheManager

@Suite("A cached value with its source")
struct CachedLookupTests {
  private let fixture: ManagerFixture
  private let text = TextTransformFixture()

  init() throws { fixture = try ManagerFixture() }

  private func store(_ options: RequestOptions = RequestOptions(), _ fields: HTTPFields = [:]) async throws {
    fixture.network.respond(to: fixture.url, with: .ok("chair", etag: "\"1\"", cacheControl: "max-age=60", fields: fields))
    _ = try await fixture.manager.load(fixture.url, options: options)
  }

  /// Returns the result of a call, and the names of its events. The call must send no request.
  private func events<Value>(
    of call: () async throws -> Resource<Value>?
  ) async throws -> (resource: Resource<Value>?, events: [String]) {
    let (events, requests) = (fixture.observer.namesOfResults.count, fixture.network.requests.count)
    let resource = try await call()
    #expect(fixture.network.requests.count == requests)
    return (resource, Array(fixture.observer.namesOfResults.dropFirst(events)))
  }

  @Test("bytes come from memory or disk, and a miss is nil and has no event")
  func bytes() async throws {
    let miss = try await events { await fixture.manager.cached(fixture.url) }
    #expect(miss.resource == nil && miss.events.isEmpty)
    try await store()

    let memory = try await events { await fixture.manager.cached(fixture.url) }
    #expect(memory.resource?.text == "chair" && memory.resource?.source == .memory && memory.events == ["hit"])
    fixture.restart()
    let disk = try await events { await fixture.manager.cached(fixture.url) }
    #expect(disk.resource?.text == "chair" && disk.resource?.source == .disk && disk.resource?.isStale == false)
    #expect(disk.events == ["started", "stored", "finished"])
    #expect(await fixture.manager.cached(fixture.url)?.source == .memory)
  }

  @Test(
    "a stale response is a result under every policy, and is not reported as a hit",
    arguments: [
      LoadPolicy.standard, .reload, .memoryElseReload, .cacheFirst, .revalidate(), .cacheOnly, .staleWhileRevalidate,
    ])
  func stale(_ policy: LoadPolicy) async throws {
    try await store()
    fixture.clock.advance(by: .seconds(90))

    let memory = try await events { await fixture.manager.cached(fixture.url, options: .policy(policy)) }
    #expect(memory.resource?.isStale == true && memory.resource?.source == .memory)
    #expect(memory.events == ["started", "finished"])
    fixture.restart()
    let disk = try await events { await fixture.manager.cached(fixture.url, options: .policy(policy)) }
    #expect(disk.resource?.isStale == true && disk.resource?.source == .disk)
    #expect(disk.events == ["started", "stored", "finished"])
  }

  @Test("a response that must be revalidated before its use is a result, and is not reported as a hit")
  func noCache() async throws {
    fixture.network.respond(to: fixture.url, with: .ok("chair", etag: "\"1\"", cacheControl: "max-age=60, no-cache"))
    _ = try await fixture.manager.load(fixture.url)
    let memory = try await events { await fixture.manager.cached(fixture.url) }
    #expect(memory.resource?.text == "chair" && memory.resource?.isStale == false)
    #expect(memory.events == ["started", "finished"])
    let options = RequestOptions.policy(.cacheOnly)
    let shown = try await events { fixture.manager.cachedInMemory(fixture.url, options: options) }
    #expect(shown.resource?.text == "chair" && shown.events.isEmpty)
  }

  @Test("a value that was not a hit is reported as one load, with the end of its work", arguments: [true, false])
  func contract(isInMemory: Bool) async throws {
    try await store()
    await fixture.manager.close()
    let observer = RecordingObserver()
    let fixture = try ManagerFixture { [former = fixture] in
      ($0.memory, $0.store, $0.clock, $0.observer) = (former.memory, former.disk, former.clock, observer)
    }
    if isInMemory { self.fixture.clock.advance(by: .seconds(90)) } else { self.fixture.restart() }
    #expect(await fixture.manager.cached(fixture.url)?.text == "chair")
    try await Polling.until { observer.events.contains { if case .workEnded = $0 { true } else { false } } }
    let names = observer.events.map { String("\($0)".prefix { $0 != "(" }) }
    #expect(names.filter { $0 != "stored" } == ["started", "finished", "workEnded"])
    #expect(Set(observer.loads).count == 1)
  }

  @Test("a value that is made from a stored original is not written to the durable store")
  func writesNoStore() async throws {
    try await store()
    fixture.restart()
    let made = await fixture.manager.cached(fixture.url, as: text.short(), options: .keeping(.all))
    #expect(made?.value == "CH" && made?.origins == "disk transformed")
    await fixture.manager.close()
    #expect(fixture.stored() == [""] && text.encoded.value == 0)
    #expect(fixture.inMemory() == ["", text.short().id])
  }

  @Test("a value is made from its stored original once, or decoded from its stored variant")
  func values() async throws {
    #expect(await fixture.manager.cached(fixture.url, as: text.plain()) == nil)
    try await store()
    fixture.restart()

    let made = try await events { await fixture.manager.cached(fixture.url, as: text.plain()) }
    #expect(made.resource?.value == "CH" && made.resource?.origins == "disk transformed")
    #expect(made.events == ["started", "stored", "transformed", "finished"])
    #expect(await fixture.manager.cached(fixture.url, as: text.plain())?.origins == "memory memory")
    #expect(text.decoded.value == 1)

    _ = try await fixture.load(text.short(), .keeping(.all, { $0.memory = .disabled }))
    fixture.restart()
    #expect(await fixture.manager.cached(fixture.url, as: text.short())?.origins == "disk disk")
  }

  @Test("simultaneous calls read the stored body once")
  func shared() async throws {
    let (fixture, store) = try ManagerFixture.held { $0.waitForStores() }
    fixture.network.respond(to: fixture.url, with: .ok("chair", cacheControl: "max-age=60"))
    _ = try await fixture.manager.load(fixture.url)
    fixture.restart()
    let open = store.hold(.open, all: true)
    let calls = (0..<2).map { _ in Task { await fixture.manager.cached(fixture.url)?.text } }
    await open.arrived()
    let core = fixture.manager.core
    let options = RequestOptions { ($0.policy, $0.writes) = (.cacheOnly, .memory) }
    let load = try ResolvedRequest(ResourceRequest(fixture.url, options: options), core)
    let key = FlightKey.bytes(CoalescingKey(load))
    let probe = try #require(core.flights.joinOpen(key, before: .max, WaiterNeeds<Exchange>()))
    try await Polling.until { probe.flight.awaiting == 3 }
    #expect(open.arrivals == 1)
    probe.leave(.cancelled)
    open.open()
    for call in calls { #expect(await call.value == "chair") }
    #expect(open.arrivals == 1 && fixture.observer.joins == 1)
  }

  @Test("a damaged entry, a store that fails and a transform that fails are nil")
  func failures() async throws {
    let failing = ResourceTransform<String>(id: "failing", cost: { $0.utf8.count }) { _, _ throws(CacheError) in
      throw CacheError(.decodingFailed, reason: "not a text")
    }
    try await store()
    #expect(try await events { await fixture.manager.cached(fixture.url, as: failing) }.resource == nil)
    fixture.restart()
    fixture.disk.failure = CacheError(.fileSystem, reason: "cannot read")
    let broken = try await events { await fixture.manager.cached(fixture.url) }
    #expect(broken.resource == nil && broken.events == ["readFailed"])
    fixture.disk.failure = nil
    for key in fixture.disk.keys { fixture.disk.damage(key) }
    #expect(try await events { await fixture.manager.cached(fixture.url) }.resource == nil)
  }

  @Test("requests that the cache never satisfies, and invalid ones, are nil")
  func unsatisfied() async throws {
    try await store()
    let (manager, url) = (fixture.manager, fixture.url)
    let requests = [
      ResourceRequest(url, method: .post), ResourceRequest(url, method: .head),
      ResourceRequest(url, body: RequestBody(Data("x".utf8))), ResourceRequest(url, headerFields: [.range: "bytes=0-1"]),
      ResourceRequest(url, headerFields: [.ifNoneMatch: "\"1\""]), ResourceRequest(try #require(URL(string: "relative"))),
      ResourceRequest(url, options: RequestOptions { $0.timeout = .zero }),
      ResourceRequest(url, options: RequestOptions { $0.key = "other" }),
      ResourceRequest(url, options: RequestOptions { $0.partition = "other" }),
      ResourceRequest(url, options: RequestOptions { $0.reads = [] }),
    ]
    for request in requests {
      let miss = try await events { await manager.cached(request, as: .bytes) }
      #expect(miss.resource == nil && miss.events.isEmpty, "\(request)")
    }
  }

  @Test("the fields of the request select the variant, and the options the entry and the layers")
  func selection() async throws {
    let partition = RequestOptions { $0.partition = "alice" }
    try await store(partition, [.vary: "Accept-Language"])
    #expect(await fixture.manager.cached(fixture.url, options: partition)?.text == "chair")
    let german = ResourceRequest(fixture.url, headerFields: [.acceptLanguage: "de"], options: partition)
    #expect(await fixture.manager.cached(german, as: .bytes) == nil)
    fixture.restart()
    let memory = RequestOptions { ($0.partition, $0.reads) = ("alice", .memory) }
    #expect(await fixture.manager.cached(fixture.url, options: memory) == nil)
  }

  @Test("a running load is not joined")
  func running() async throws {
    let gate = Gate()
    fixture.network.respond(to: fixture.url, with: .ok("late").held(by: gate))
    let load = Task { try await fixture.manager.load(fixture.url).text }
    await gate.arrived()
    #expect(await fixture.manager.cached(fixture.url) == nil)
    gate.open()
    #expect(try await load.value == "late")
  }

  @Test("a cancelled call returns nil at once, and closing does not wait for it")
  func cancelled() async throws {
    let (fixture, store) = try ManagerFixture.held { $0.waitForStores() }
    let look = store.hold(.look, all: true)
    let call = Task { await fixture.manager.cached(fixture.url) == nil }
    await look.arrived()
    call.cancel()
    #expect(await call.value)
    look.open()
    await fixture.manager.close()
  }

  @Test("a store that is too slow, and the timeout of the options, end the call with nil", .timeLimit(.minutes(30)))
  func slow() async throws {
    let (fixture, store) = try ManagerFixture.held { $0.storeReadTimeout = .milliseconds(100) }
    let look = store.hold(.look, all: true)
    #expect(try await fixture.whileTimePasses { await fixture.manager.cached(fixture.url) } == nil)
    let options = RequestOptions { ($0.timeout, $0.storeReadTimeout) = (.seconds(1), .disabled) }
    #expect(try await fixture.whileTimePasses { await fixture.manager.cached(fixture.url, options: options) } == nil)
    look.open()
  }

  @Test("cancelling the loads of the URL ends the call with nil")
  func cancelledByManager() async throws {
    let (fixture, store) = try ManagerFixture.held { $0.waitForStores() }
    let look = store.hold(.look, all: true)
    let call = Task { await fixture.manager.cached(fixture.url) == nil }
    await look.arrived()
    fixture.manager.cancel(fixture.url)
    #expect(await call.value)
    look.open()
  }

  @Test("a closed manager reads memory alone")
  func closed() async throws {
    try await store()
    await fixture.manager.close()
    #expect(await fixture.manager.cached(fixture.url)?.source == .memory)
    fixture.restart()
    #expect(await fixture.manager.cached(fixture.url) == nil)
  }
}
