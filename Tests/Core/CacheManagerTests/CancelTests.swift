import CacheCore
import CacheTesting
import Foundation
import HTTPTypes
import Testing

@testable import CacheManager

@Suite("Cancelling the loads of a manager", .timeLimit(.minutes(30)))
struct CancelTests {
  private let fixture: ManagerFixture
  private let gate = Gate()

  init() throws { fixture = try ManagerFixture() }

  private func serve(_ url: URL) {
    fixture.network.serve(url) { [gate] _ in .ok("body", etag: "\"1\"", cacheControl: "max-age=60").bodyHeld(by: gate) }
  }

  private func load(
    _ url: URL? = nil, _ options: RequestOptions = RequestOptions(), in fixture: ManagerFixture? = nil
  ) -> Task<Resource<Data>, any Error> {
    let (fixture, url) = (fixture ?? self.fixture, url ?? self.fixture.url)
    return Task { try await fixture.manager.load(url, options: options) }
  }

  @Test("every waiter of a flight ends, the transfer stops, and the next load begins anew", arguments: [true, false])
  func waiters(isOfAll: Bool) async throws {
    fixture.network.respond(
      to: fixture.url, with: .ok("old").bodyHeld(by: gate), .ok("new", cacheControl: "max-age=60"))
    let loads = [load(), load()]
    await gate.arrived()
    await fixture.observer.joined()

    if isOfAll { fixture.manager.cancelAll() } else { fixture.manager.cancel(fixture.url) }

    for load in loads { #expect(await load.result.isCancellation) }
    try await Polling.until { fixture.network.cancelledBodies == 1 }
    #expect(try await fixture.manager.load(fixture.url).text == "new")
    await fixture.manager.close()
    #expect(fixture.disk.keys.count == 1)
    try fixture.network.verify()
  }

  @Test("loads in every form end", arguments: LoadCall.allCases)
  func forms(_ form: LoadCall) async throws {
    serve(fixture.url)
    let load = Task { try await fixture.failure(form) }
    await gate.arrived()

    fixture.manager.cancel(fixture.url)

    #expect(try await load.value.isCancellation)
    try await Polling.until { fixture.network.cancelledBodies == 1 }
    #expect(fixture.network.requests.count == 1)
    gate.open()
    #expect(try await fixture.load(form).text == "body")
    await fixture.manager.close()
  }

  @Test("loads of another URL, key or partition continue, and loads with other fields end")
  func others() async throws {
    let other = try fixture.url("/other")
    for url in [fixture.url, other] { serve(url) }
    let key = RequestOptions { $0.key = "key" }
    let partition = RequestOptions { $0.partition = "alice" }
    let continuing = [load(other), load(fixture.url, key), load(fixture.url, partition)]
    let ending = [
      load(), Task { try await fixture.manager.load(ResourceRequest(fixture.url, headerFields: [.acceptLanguage: "de"])) },
    ]
    await gate.arrived(5)

    fixture.manager.cancel(fixture.url)
    for load in ending { #expect(await load.result.isCancellation) }
    fixture.manager.cancel(fixture.url, options: partition)
    #expect(await continuing[2].result.isCancellation)
    gate.open()

    for load in continuing[..<2] { #expect(try await load.value.text == "body") }
    #expect(fixture.network.requests.count == 5)
  }

  @Test("a call with nothing to cancel does nothing")
  func nothing() async throws {
    fixture.network.respond(to: fixture.url, with: .ok("body", cacheControl: "max-age=60"))
    fixture.manager.cancel(fixture.url)
    fixture.manager.cancel(try #require(URL(string: "relative")))
    fixture.manager.cancel(fixture.url, options: RequestOptions { $0.timeout = .zero })
    fixture.manager.cancelAll()

    #expect(try await fixture.manager.load(fixture.url).text == "body")
    fixture.manager.cancel(fixture.url)
    #expect(try await fixture.manager.load(fixture.url).source == .memory)
    await fixture.manager.close()
    fixture.manager.cancelAll()
  }

  @Test("a load with a callback ends if it is cancelled directly after the call")
  func callback() async throws {
    serve(fixture.url)
    let result = await withCheckedContinuation { continuation in
      _ = fixture.manager.load(fixture.url) { continuation.resume(returning: $0) }
      fixture.manager.cancel(fixture.url)
    }
    #expect(result.isCancellation)
    await fixture.manager.close()
  }

  @Test("a load that has begun and has not joined a flight ends when it joins", arguments: [true, false])
  func early(isOfAll: Bool) async throws {
    serve(fixture.url)
    let core = fixture.manager.core
    let load = try ResolvedRequest(ResourceRequest(fixture.url), core)
    let other = try ResolvedRequest(ResourceRequest(try fixture.url("/other")), core)
    fixture.network.respond(to: other.url, with: .ok("other"))

    if isOfAll { fixture.manager.cancelAll() } else { fixture.manager.cancel(fixture.url) }

    #expect(await core.outcome(of: load, known: nil, .bytes).isCancellation)
    #expect(await core.outcome(of: other, known: nil, .bytes).isCancellation == isOfAll)
    #expect(fixture.network.requests(for: fixture.url).isEmpty)
    await fixture.manager.close()
  }

  @Test("the latest of many cancellations are remembered")
  func remembered() {
    var log = CancellationLog()
    for number in 1...5_000 { log.add(UInt64(number), CacheKey(resource: "\(number)")) }
    #expect(log.includes(4_999, "5000") && log.includes(4_000, "4500"))
    #expect(!log.includes(5_000, "5000") && !log.includes(1, "other"))
    log.add(6_000, nil)
    #expect(log.includes(5_999, "other") && !log.includes(6_000, "other"))
  }

  @Test("a load whose store is being read ends after the lookup, also with a hit", arguments: [true, false], [true, false])
  func lookup(isBounded: Bool, isStored: Bool) async throws {
    let (fixture, store) = try ManagerFixture.held(boundsLookupTime: isBounded) { $0.waitForStores() }
    fixture.network.respond(to: fixture.url, with: .ok("body", cacheControl: "max-age=60"))
    if isStored {
      _ = try await fixture.manager.load(fixture.url)
      fixture.restart()
    }
    let before = fixture.network.requests.count
    let look = store.hold(.look)
    let load = load(in: fixture)
    await look.arrived()

    fixture.manager.cancel(fixture.url)
    look.open()

    #expect(await load.result.isCancellation)
    #expect(fixture.network.requests.count == before)
    #expect(try await fixture.manager.load(fixture.url).text == "body")
    await fixture.manager.close()
  }

  @Test("a load ends while the store commits its response, which is stored all the same")
  func commit() async throws {
    let (fixture, store) = try ManagerFixture.held { $0.storeWriteTimeout = .seconds(3_600) }
    fixture.network.respond(to: fixture.url, with: .ok("body", cacheControl: "max-age=60"))
    let commit = store.hold(.commit)
    let load = load(in: fixture)
    await commit.arrived()

    fixture.manager.cancel(fixture.url)
    #expect(await load.result.isCancellation)
    commit.open()

    try await Polling.until { store.base.keys.count == 1 }
    try await Polling.until { try await fixture.manager.lookup(fixture.url) != .miss }
    #expect(try await fixture.manager.load(fixture.url).text == "body")
    await fixture.manager.close()
    #expect(fixture.network.requests.count == 1)
  }

  @Test("a load ends while the store writes a part of its body, and nothing of it is stored")
  func write() async throws {
    let (fixture, store) = try ManagerFixture.held { $0.storeWriteTimeout = .seconds(3_600) }
    fixture.network.respond(
      to: fixture.url, with: .ok(Data(count: 300_000), cacheControl: "max-age=60").chunked(by: 1_000),
      .ok("new", cacheControl: "max-age=60"))
    let write = store.hold(.write)
    let load = load(in: fixture)
    await write.arrived()

    fixture.manager.cancel(fixture.url)
    #expect(await load.result.isCancellation)
    write.open()

    #expect(try await fixture.manager.load(fixture.url).text == "new")
    await fixture.manager.close()
    let key = try #require(store.base.keys.first)
    let entry = try await store.base.entry(for: key, range: nil)
    #expect(store.base.keys.count == 1)
    #expect(try await entry?.body.collect(limit: 100) == Data("new".utf8))
  }

  @Test("a load into a file leaves no file, and the next one completes it")
  func file() async throws {
    let folder = try DownloadFolder()
    serve(fixture.url)
    let first = Task { try await fixture.manager.load(fixture.url, to: folder.file()) }
    await gate.arrived()

    fixture.manager.cancelAll()
    #expect(await first.result.isCancellation)
    #expect(folder.content() == nil)
    gate.open()

    _ = try await fixture.manager.load(fixture.url, to: folder.file())
    #expect(folder.content() == Data("body".utf8))
    await fixture.manager.close()
  }

  @Test("waiting prefetches end, and none of them starts in the place of a running one")
  func prefetches() async throws {
    let urls = try (0..<4).map { try fixture.url("/\($0)") }
    for url in urls { serve(url) }
    let prefetchers = [fixture.manager.prefetcher(concurrency: 1), fixture.manager.prefetcher(into: .disk, concurrency: 1)]
    prefetchers[0].append(urls)
    await gate.arrived()
    prefetchers[1].pause()
    prefetchers[1].append(urls)

    fixture.manager.cancel(urls[2])
    #expect(prefetchers.map(\.progress.failed) == [1, 1])
    fixture.manager.cancelAll()

    prefetchers[1].resume()
    for prefetcher in prefetchers {
      let report = await prefetcher.report()
      #expect(report.failed.map(\.url) == urls && report.failed.allSatisfy { $0.error.isCancellation })
    }
    await fixture.manager.close()
    #expect(fixture.network.requests.count == 1)
  }

  @Test("work that waits for other work of the resource does not begin that work itself")
  func waitingWork() async throws {
    serve(fixture.url)
    let prefetcher = fixture.manager.prefetcher(into: .disk)
    prefetcher.append([fixture.url])
    await gate.arrived()
    let text = TextTransformFixture()
    let loads = [
      Task { _ = try await fixture.manager.load(fixture.url) },
      Task { _ = try await fixture.manager.load(fixture.url, as: text.short()) },
      Task { _ = try await fixture.manager.load(fixture.url, as: text.whole) },
    ]
    try await Polling.until { fixture.observer.loads.count == 4 }
    for _ in 0..<100 { await Task.yield() }

    fixture.manager.cancel(fixture.url)

    for load in loads { #expect(await load.result.isCancellation) }
    #expect(await prefetcher.report().failed.map(\.error.code) == [.cancelled])
    await fixture.manager.close()
    #expect(fixture.network.requests.count == 1)
  }

  @Test("loads that revalidate one response together end, and none of them sends the next request")
  func revalidating() async throws {
    fixture.network.respond(
      to: fixture.url, with: .ok("old", etag: "\"1\"", cacheControl: "max-age=1, stale-while-revalidate=60"),
      .ok("new", cacheControl: "max-age=60").bodyHeld(by: gate))
    _ = try await fixture.manager.load(fixture.url)
    fixture.clock.advance(by: .seconds(2))
    let mark = try #require(HTTPField.Name("X-Mark"))
    let stale = (0..<5).map { _ in Gate() }
    var loads: [Task<Void, any Error>] = []
    for number in 0..<5 {
      let request = ResourceRequest(fixture.url, headerFields: [mark: "\(number)"])
      loads.append(
        Task { [manager = fixture.manager] in
          for try await event in manager.events(for: request) { if case .stale = event { stale[number].open() } }
        })
      await stale[number].pass()
      if number == 0 { await gate.arrived() }
    }

    fixture.manager.cancel(fixture.url)

    for load in loads { #expect(await load.result.isCancellation) }
    await fixture.manager.close()
    #expect(fixture.network.requests.count == 2)
  }

  @Test("a revalidation in the background ends, and the stale response stays", arguments: [true, false])
  func background(isOfLoad: Bool) async throws {
    fixture.network.respond(
      to: fixture.url, with: .ok("old", etag: "\"1\"", cacheControl: "max-age=1, stale-while-revalidate=60"),
      .ok("new", cacheControl: "max-age=60").bodyHeld(by: gate), .notModified(cacheControl: "max-age=60"))
    _ = try await fixture.manager.load(fixture.url)
    fixture.clock.advance(by: .seconds(2))
    if isOfLoad { _ = try await fixture.manager.load(fixture.url) } else { _ = try await fixture.send() }
    await gate.arrived()

    fixture.manager.cancel(fixture.url)

    try await Polling.until { fixture.network.cancelledBodies == 1 }
    let final = try await fixture.manager.load(fixture.url, options: .policy(.revalidate()))
    #expect(final.text == "old" && final.source == .revalidated)
    await fixture.manager.close()
    try fixture.network.verify()
  }

  @Test("a load that another URL redirected ends with the URL of its caller only")
  func redirected() async throws {
    let target = try fixture.url("/target")
    for _ in 0..<2 { fixture.network.respond(to: fixture.url, with: .redirect(to: "/target")) }
    serve(target)
    let first = load()
    await gate.arrived()
    fixture.manager.cancel(target)
    gate.open()
    #expect(try await first.value.text == "body")

    gate.close()
    let arrivals = gate.arrivals
    let second = load(fixture.url, .policy(.reload))
    await gate.arrived(arrivals + 1)
    fixture.manager.cancel(fixture.url)
    #expect(await second.result.isCancellation)
  }

  @Test("a response to an HTTP caller and a response of the caller are not cancelled")
  func notLoads() async throws {
    let (fixture, store) = try ManagerFixture.held { $0.storeWriteTimeout = .seconds(3_600) }
    fixture.network.respond(to: fixture.url, with: .ok("body", cacheControl: "no-store").held(by: gate))
    let exchange = Task { try await fixture.send().text }
    await gate.arrived()
    let (commit, own) = (store.hold(.commit), try fixture.url("/own"))
    let storing = Task { try await fixture.manager.store(Data("own".utf8), for: own) }
    await commit.arrived()

    fixture.manager.cancelAll()
    fixture.manager.cancel(own)
    commit.open()
    gate.open()

    #expect(try await exchange.value == "body")
    try await storing.value
    #expect(try await fixture.manager.load(own).text == "own")
    await fixture.manager.close()
  }

  @Test("a value ends while it is made, and its step does not affect the next load")
  func value() async throws {
    let held = Gate()
    fixture.network.serve(fixture.url) { _ in .ok("body", cacheControl: "max-age=60") }
    let transform = ResourceTransform<String>(id: "held", cost: { $0.utf8.count }) { body, _ throws(CacheError) in
      await held.pass()
      if Task.isCancelled { throw .cancelled }
      return String(decoding: try await body.collect(limit: 100), as: UTF8.self)
    }
    let loads = (0..<2).map { _ in Task { try await fixture.manager.load(fixture.url, as: transform) } }
    await held.arrived()
    await fixture.observer.joined()

    fixture.manager.cancel(fixture.url)
    for load in loads { #expect(await load.result.isCancellation) }
    held.open()

    #expect(try await fixture.manager.load(fixture.url, as: transform).value == "body")
    await fixture.manager.close()
  }

  @Test("a load that begins while the flights of its URL end joins none of them")
  func atomic() async throws {
    let (held, url) = (Gate(), fixture.url)
    let core = Lock<LoadCoordinator?>(nil)
    let joins = Lock<[Bool]>([])
    let network = ClosureDownloader { seen throws(CacheError) in
      await withTaskCancellationHandler {
        await held.pass()
      } onCancel: {
        // The flight of this request began later, so it is cancelled before the one without the field.
        guard seen.head.headerFields[.acceptLanguage] != nil, let core = core.withLock({ $0 }),
          let load = try? ResolvedRequest(ResourceRequest(url), core)
        else { return }
        let key = FlightKey.bytes(CoalescingKey(load))
        let waiter = core.flights.joinOpen(key, before: .max, WaiterNeeds<Exchange>())
        joins.withLock { $0.append(waiter != nil) }
        waiter?.leave(.cancelled)
      }
      throw .cancelled
    }
    let fixture = try ManagerFixture { $0.downloader = network }
    core.withLock { $0 = fixture.manager.core }
    let first = load(in: fixture)
    await held.arrived()
    let second = Task { try await fixture.manager.load(ResourceRequest(url, headerFields: [.acceptLanguage: "de"])) }
    await held.arrived(2)

    fixture.manager.cancel(url)

    #expect(await first.result.isCancellation)
    #expect(await second.result.isCancellation)
    #expect(joins.withLock { $0 } == [false])
    held.open()
    await fixture.manager.close()
  }
}
