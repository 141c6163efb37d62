import CacheCore
import CacheManager
import CacheTesting
import Foundation
import HTTPTypes
import Testing

@Suite("A deadline with a stored response")
struct DeadlineFallbackTests {
  private let fixture: ManagerFixture
  private let gate = Gate()
  private let options = RequestOptions { $0.timeout = .seconds(5) }

  init() throws { fixture = try ManagerFixture { $0.waitForStores() } }

  private func options(_ change: (inout RequestOptions) -> Void) -> RequestOptions {
    var options = options
    change(&options)
    return options
  }

  /// Lets the deadline pass when the request has been sent.
  private func passDeadline(sleepers: Int = 1) async {
    await gate.arrived()
    await fixture.clock.sleepers(sleepers)
    fixture.clock.advance(by: .seconds(5))
  }

  private func expectEnd(cancelled: Int = 0) async {
    gate.open()
    await fixture.manager.close()
    #expect(fixture.clock.pendingSleeps == 0)
    #expect(fixture.network.cancelledBodies == cancelled)
  }

  @Test("every form of a load uses a stale response at its deadline", arguments: LoadCall.allCases, [true, false])
  func forms(_ form: LoadCall, inMemory: Bool) async throws {
    try await fixture.storeStale(inMemory: inMemory)
    fixture.network.respond(to: fixture.url, with: .ok("late").held(by: gate))

    async let shown = fixture.load(form, [:], options)
    await passDeadline()

    let result = try await shown
    #expect(result.text == "old" && result.isUnconfirmed)
    if form != .prefetch, form != .prefetchToDisk {
      #expect(result.fallbackReason?.code == .timedOut && result.fallbackReason?.url == fixture.url.absoluteString)
    }
    await expectEnd()
    #expect(fixture.network.requests.count == 2)
  }

  @Test(
    "a body that is late is replaced by the stale response, also in a file", arguments: [LoadCall.bytes, .value, .events, .file])
  func body(_ form: LoadCall) async throws {
    try await fixture.storeStale()
    fixture.network.respond(to: fixture.url, with: .ok("new body", etag: "\"2\"").chunked(by: 3).bodyHeld(by: gate))

    async let shown = fixture.load(form, [:], options)
    gate.letThrough()
    await gate.arrived(2)
    await passDeadline()

    #expect(try await shown.text == "old")
    await expectEnd(cancelled: 1)
  }

  @Test(
    "the error stays a timeout if nothing is stored, or if the stored response may not be used",
    arguments: LoadCall.allCases, ["nothing", "must-revalidate", "no-cache", "request", "reload", "never"])
  func forbidden(_ form: LoadCall, _ reason: String) async throws {
    var (fields, options) = (HTTPFields(), options)
    switch reason {
    case "must-revalidate", "no-cache": try await fixture.storeStale(cacheControl: "max-age=60, \(reason)")
    case "nothing": break
    default: try await fixture.storeStale()
    }
    if reason == "request" { fields[.cacheControl] = "no-cache" }
    if reason == "reload" { options.policy = .reload }
    if reason == "never" { options.staleFallback = .never }
    fixture.network.respond(to: fixture.url, with: .ok("late").held(by: gate))

    async let failure = fixture.failure(form, fields, options)
    await passDeadline()

    let error = try await failure
    #expect(error.code == .timedOut && error.reason.contains("not loaded within"))
    await expectEnd()
  }

  @Test(
    "the stale response is used with every policy that would send the request",
    arguments: [
      LoadPolicy.standard, .revalidate(), .revalidate(atMostEvery: .seconds(1)), .revalidate(showCachedAfter: .seconds(60)),
    ])
  func policies(_ policy: LoadPolicy) async throws {
    try await fixture.storeStale()
    fixture.network.respond(to: fixture.url, with: .ok("late").held(by: gate))

    async let shown = fixture.load(.bytes, [:], options { $0.policy = policy })
    await passDeadline(sleepers: policy == .revalidate(showCachedAfter: .seconds(60)) ? 2 : 1)

    #expect(try await shown.fallbackReason?.code == .timedOut)
    await expectEnd()
  }

  @Test("after a stale value, the final event at the deadline states why the value is not confirmed")
  func staleWhileRevalidate() async throws {
    try await fixture.storeStale()
    fixture.network.respond(to: fixture.url, with: .ok("late").held(by: gate))
    let events = fixture.manager.events(for: fixture.url, options: options { $0.policy = .staleWhileRevalidate })

    let seen = Task {
      var seen: [(text: String, code: CacheError.Code?)] = []
      for try await event in events {
        switch event {
        case .progress: break
        case .stale(let resource), .final(let resource): seen.append((resource.text, resource.fallbackReason?.code))
        }
      }
      return seen
    }
    await passDeadline()

    let (texts, codes) = try await (seen.value.map(\.text), seen.value.map(\.code))
    #expect(texts == ["old", "old"] && codes == [nil, .timedOut])
    await expectEnd()
  }

  @Test("a waiter whose deadline passes uses the stale response, and the transfer continues for the others")
  func waiters() async throws {
    try await fixture.storeStale()
    fixture.network.respond(to: fixture.url, with: .ok("new", etag: "\"2\"").held(by: gate))
    let (manager, url) = (fixture.manager, fixture.url)

    async let patient = manager.load(url, options: RequestOptions { $0.timeout = .seconds(60) })
    await gate.arrived()
    async let hasty = manager.load(url, options: options)
    async let other = manager.load(url)
    try await Polling.until { fixture.observer.events.count { if case .joined = $0 { true } else { false } } == 2 }
    await passDeadline(sleepers: 2)
    #expect(try await hasty.fallbackReason?.code == .timedOut)
    gate.open()

    #expect(try await patient.text == "new")
    #expect(try await other.text == "new")
    await expectEnd()
    #expect(fixture.network.requests.count == 2)
  }

  @Test("a load that waits for another host's memory uses the stale response at its deadline")
  func budget() async throws {
    let fixture = try ManagerFixture {
      $0.waitForStores()
      $0.memoryBudget = 400_000
    }
    try await fixture.storeStale()
    let large = try #require(URL(string: "https://other.example/large"))
    fixture.network.respond(to: large, with: .ok(Data(count: 250_000)).chunked(by: 240_000).bodyHeld(by: gate))
    async let filling = fixture.manager.load(large)
    gate.letThrough()
    try await Polling.until { fixture.manager.memoryUse.inUse == 240_000 }

    async let shown = fixture.manager.load(fixture.url, options: options)
    try await Polling.until { fixture.manager.memoryUse.waiting == 1 }
    await fixture.clock.sleepers(1)
    fixture.clock.advance(by: .seconds(5))

    #expect(try await shown.fallbackReason?.code == .timedOut)
    #expect(fixture.network.requests(for: fixture.url).count == 1)
    gate.open()
    #expect(try await filling.data.count == 250_000)
  }

  @Test("a load whose downloader sleeps before its next attempt uses the stale response at its deadline")
  func retry() async throws {
    try await fixture.storeStale()
    fixture.network.respond(to: fixture.url, with: ScriptedResponse.ok("late").after(.seconds(3_600)))

    async let shown = fixture.manager.load(fixture.url, options: options)
    await fixture.clock.sleepers(2)
    fixture.clock.advance(by: .seconds(5))

    #expect(try await shown.text == "old")
    await expectEnd()
  }

  @Test("the stale original is used at the deadline while an alternative is late", arguments: [true, false])
  func alternatives(originalFails: Bool) async throws {
    try await fixture.storeStale()
    let mirror = try #require(URL(string: "https://mirror.example/image.png"))
    fixture.network.respond(to: fixture.url, with: originalFails ? .failure(.offline) : .ok("late").held(by: gate))
    fixture.network.respond(to: mirror, with: .ok("late").held(by: gate))

    async let shown = fixture.load(.bytes, [:], options { $0.alternatives = [.mirror(mirror)] })
    await passDeadline()

    let result = try await shown
    #expect(result.text == "old" && result.fallbackReason?.code == .timedOut)
    gate.open()
    await fixture.manager.close()
  }

  @Test("at the deadline, stored redirects lead to the stale response")
  func redirect() async throws {
    let target = try fixture.url("/target")
    fixture.network.respond(
      to: fixture.url, with: .response(.movedPermanently, fields: [.location: "/target", .cacheControl: "max-age=600"]))
    fixture.network.respond(
      to: target, with: .ok("old", cacheControl: "max-age=60"), .ok("late").held(by: gate))
    _ = try await fixture.manager.load(fixture.url)
    fixture.clock.advance(by: .seconds(90))

    async let shown = fixture.manager.load(fixture.url, options: options)
    await passDeadline()

    let resource = try await shown
    #expect(resource.text == "old" && resource.url == target && resource.redirects == [fixture.url])
    #expect(resource.fallbackReason?.code == .timedOut)
    await expectEnd()
  }

  @Test("a deadline that passes while the store is looked up is an error at once")
  func lookup() async throws {
    let (fixture, store) = try ManagerFixture.held { $0.waitForStores() }
    try await fixture.storeStale(inMemory: false)
    let look = store.hold(.look, all: true)

    async let failure = fixture.failure(fixture.url, options)
    await look.arrived()
    await fixture.clock.sleepers(1)
    fixture.clock.advance(by: .seconds(5))

    #expect(try await failure.code == .timedOut)
    look.open()
    await fixture.manager.close()
    #expect(fixture.network.requests.count == 1)
  }

  @Test("a store that does not return the stale body delays the error by a tenth of the timeout", arguments: [true, false])
  func slowStore(isCancelled: Bool) async throws {
    let (fixture, store) = try ManagerFixture.held { $0.waitForStores() }
    try await fixture.storeStale(inMemory: false)
    fixture.network.respond(to: fixture.url, with: .ok("late").held(by: gate))
    let open = store.hold(.open, all: true)

    let load = Task { try await fixture.failure(fixture.url, options) }
    await gate.arrived()
    await fixture.clock.sleepers(1)
    fixture.clock.advance(by: .seconds(5))
    await open.arrived()
    await fixture.clock.sleepers(1)
    if isCancelled { load.cancel() } else { fixture.clock.advance(by: .milliseconds(500)) }

    #expect(try await load.value.code == (isCancelled ? .cancelled : .timedOut))
    open.open()
    gate.open()
    await fixture.manager.close()
    #expect(fixture.clock.pendingSleeps == 0)
  }

  @Test("a stored value is used at the deadline, also without its original", arguments: [StoragePolicy.variants, .all])
  func storedValue(_ policy: StoragePolicy) async throws {
    let shop = TextTransformFixture()
    fixture.network.respond(
      to: fixture.url, with: .ok("old", etag: "\"1\"", cacheControl: "max-age=60"), .ok("late").held(by: gate))
    let (manager, url, options) = (fixture.manager, fixture.url, options { $0.storagePolicy = policy })
    _ = try await manager.load(url, as: shop.short(), options: options)
    fixture.restart()
    fixture.clock.advance(by: .seconds(90))

    let load = Task { try await manager.load(url, as: shop.short(), options: options) }
    await passDeadline()

    let shown = try await load.value
    #expect(shown.value == "OL" && shown.valueOrigin == .disk && shown.fallbackReason?.code == .timedOut)
    #expect(shop.decoded.value == 1)
    await expectEnd()
  }

  @Test("a stale value that cannot be decoded leaves the timeout as the error")
  func undecodable() async throws {
    try await fixture.storeStale()
    fixture.network.respond(to: fixture.url, with: .ok("late").held(by: gate))
    struct Broken: ResourceDecoder {
      let id = ComponentID(Broken.self, parameters: "")

      func decode(_ data: Data, _ metadata: StoredMetadata) throws(CacheError) -> String {
        throw CacheError(.decodingFailed, reason: "broken")
      }

      func cost(of value: String) -> Int { 0 }
    }
    let broken = ResourceTransform(decoder: Broken())
    let (manager, url, options) = (fixture.manager, fixture.url, options)

    let load = Task { try await manager.load(url, as: broken, options: options) }
    await passDeadline()

    let error = await #expect(throws: CacheError.self) { try await load.value }
    #expect(error?.code == .timedOut)
    await expectEnd()
  }

  @Test("an unsafe request is not sent again at its deadline, and its error is a timeout")
  func unsafe() async throws {
    try await fixture.storeStale()
    fixture.network.respond(to: fixture.url, with: .ok("late").held(by: gate))
    let request = ResourceRequest(
      fixture.url, method: .post, body: RequestBody(Data("x".utf8), contentType: "text/plain"), options: options)
    let manager = fixture.manager

    let load = Task { try await manager.load(request) }
    await passDeadline()

    let error = await #expect(throws: CacheError.self) { try await load.value }
    #expect(error?.code == .timedOut && fixture.network.requests.count == 2)
    await expectEnd()
  }

  @Test("a load that falls back reports its start and its end once, and no request")
  func events() async throws {
    try await fixture.storeStale()
    fixture.network.respond(to: fixture.url, with: .ok("late").held(by: gate))
    let before = fixture.observer.events.count

    async let shown = fixture.manager.load(fixture.url, options: options)
    await passDeadline()
    _ = try await shown
    await expectEnd()

    let events = fixture.observer.events.dropFirst(before)
    #expect(events.count { if case .started = $0 { true } else { false } } == 1)
    #expect(events.count { if case .requestSent = $0 { true } else { false } } == 1)
    #expect(events.count { if case .finished(_, .memory, .some, nil, _) = $0 { true } else { false } } == 1)
  }
}
