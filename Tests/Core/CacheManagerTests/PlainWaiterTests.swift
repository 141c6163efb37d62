import CacheCore
import CacheTesting
import Foundation
import HTTPTypes
import Testing

@testable import CacheManager

@Suite("Plain loads that join a flight without being resolved")
struct PlainWaiterTests {
  private let fixture: ManagerFixture
  private let gate = Gate()
  /// A URL of this test alone, because all managers of the process share the epochs of resources.
  private let url: URL

  init() throws {
    fixture = try ManagerFixture { $0.observer = nil }
    url = try fixture.url("/\(UUID().uuidString)")
  }

  private var flights: Flights { fixture.manager.core.flights }
  private var key: CacheKey { CacheKey(resource: url.absoluteString) }

  private func load() -> Task<Resource<Data>, any Error> { Task { [fixture, url] in try await fixture.manager.load(url) } }

  /// Starts a load, whose response waits at the gate, and a second one, which lists the flight. Returns both loads and the
  /// flight.
  private func listed() async throws -> (loads: [Task<Resource<Data>, any Error>], flight: Flight<Exchange>) {
    let first = load()
    await gate.arrived()
    let resolved = try ResolvedRequest(ResourceRequest(url), fixture.manager.core)
    let key = FlightKey.bytes(CoalescingKey(resolved))
    let (waiter, isNew) = try #require(flights.join(key, resolved, WaiterNeeds<Exchange>()))
    #expect(!isNew && resolved.isPlain)
    let second = load()
    try await Polling.until(limit: 100_000) { flights.hasListed && waiter.flight.awaiting == 3 }
    waiter.leave(.cancelled)
    return ([first, second], waiter.flight)
  }

  /// Starts loads, and waits until they have joined the flight.
  private func join(_ flight: Flight<Exchange>, _ count: Int) async throws -> [Task<Resource<Data>, any Error>] {
    let present = flight.awaiting
    let loads = (0..<count).map { _ in load() }
    try await Polling.until(limit: 100_000) { flight.awaiting == present + count }
    return loads
  }

  @Test("many loads get the response of one request, and the flight is not listed after its end")
  func together() async throws {
    fixture.network.respond(to: url, with: .ok("text", cacheControl: "max-age=60").held(by: gate))
    let (loads, flight) = try await listed()
    let further = try await join(flight, 20)
    gate.open()
    for load in loads + further {
      let resource = try await load.value
      #expect(resource.text == "text" && resource.source == .network && resource.metrics.attempts == 1)
    }
    #expect(fixture.network.requests.count == 1 && !flights.hasListed && flights.listed(key) == nil)
    await fixture.manager.close()
  }

  @Test("cancelled loads leave at once, and the others get the response")
  func cancelled() async throws {
    fixture.network.respond(to: url, with: .ok("text", cacheControl: "max-age=60").held(by: gate))
    let (loads, flight) = try await listed()
    let further = try await join(flight, 200)
    for index in further.indices where index % 2 == 0 { further[index].cancel() }
    for index in further.indices where index % 2 == 0 { #expect(await further[index].result.isCancellation) }
    #expect(flight.awaiting == 102)
    gate.open()
    for load in loads { #expect(try await load.value.text == "text") }
    for index in further.indices where index % 2 == 1 { #expect(try await further[index].value.text == "text") }
    await fixture.manager.close()
  }

  @Test("a load of a cancelled task ends at once")
  func cancelledBefore() async throws {
    fixture.network.respond(to: url, with: .ok("text", cacheControl: "max-age=60").held(by: gate))
    let (loads, _) = try await listed()
    let late = Task { [fixture, url] in
      withUnsafeCurrentTask { $0?.cancel() }
      return try await fixture.manager.load(url)
    }
    #expect(await late.result.isCancellation)
    gate.open()
    for load in loads { #expect(try await load.value.text == "text") }
    await fixture.manager.close()
  }

  @Test("the request is cancelled with the last load")
  func lastOne() async throws {
    fixture.network.respond(
      to: url, with: .ok("first").held(by: gate), .ok("second", cacheControl: "max-age=60"))
    let (loads, flight) = try await listed()
    let all = loads + (try await join(flight, 2))
    for load in all { load.cancel() }
    for load in all { #expect(await load.result.isCancellation) }
    #expect(try await fixture.manager.load(url).text == "second")
    await fixture.manager.close()
  }

  @Test("a failure of the request reaches every load, with its URL")
  func failed() async throws {
    fixture.network.respond(to: url, with: .response(.notFound).held(by: gate))
    let (loads, flight) = try await listed()
    let all = loads + (try await join(flight, 2))
    gate.open()
    for load in all {
      let error = await load.result.failure as? CacheError
      #expect(error?.code == .unacceptableStatus && error?.url == url.absoluteString)
    }
    await fixture.manager.close()
  }

  @Test("loads do not share a response that is for one user, and each has its own request")
  func alone() async throws {
    fixture.network.serve(url) { [gate] _ in .ok("text", cacheControl: "no-store").held(by: gate) }
    let (loads, flight) = try await listed()
    let all = loads + (try await join(flight, 3))
    gate.open()
    for load in all { #expect(try await load.value.text == "text") }
    #expect(fixture.network.requests.count == 5)
    await fixture.manager.close()
  }

  @Test("a load after a purge does not join a flight from before it")
  func purged() async throws {
    fixture.network.respond(
      to: url, with: .ok("old").held(by: gate), .ok("new", cacheControl: "max-age=60"))
    let (loads, _) = try await listed()
    try await fixture.manager.remove(url)
    #expect(flights.listed(key) == nil)
    #expect(try await fixture.manager.load(url).text == "new")
    gate.open()
    for load in loads { #expect(try await load.value.text == "old") }
    await fixture.manager.close()
  }

  @Test("a load gets the response that was stored after the flight began, also if it has selecting fields")
  func stored() async throws {
    fixture.network.respond(
      to: url, with: .ok("old", cacheControl: "max-age=60").held(by: gate),
      .ok("new", cacheControl: "max-age=60", fields: [.vary: "Accept-Language"]))
    let (loads, _) = try await listed()
    #expect(try await fixture.manager.load(url, options: .policy(.reload)).text == "new")
    #expect(try await fixture.manager.load(url).text == "new")
    gate.open()
    for load in loads { #expect(try await load.value.text == "old") }
    await fixture.manager.close()
  }

  @Test("after a removal of another resource, loads join a flight until it has requested another URL")
  func removalOfOther() async throws {
    fixture.network.respond(to: url, with: .ok("text", cacheControl: "max-age=60").held(by: gate))
    let (loads, flight) = try await listed()
    let open = try #require(flight.key)
    try await fixture.manager.remove(try fixture.url("/\(UUID().uuidString)"))
    let joined = try #require(flights.joinOpen(open, before: .max, WaiterNeeds<Exchange>()))
    joined.leave(.cancelled)

    flight.report(.otherURL)

    #expect(flights.joinOpen(open, before: .max, WaiterNeeds<Exchange>()) == nil)
    #expect(flights.listed(key) == nil)
    gate.open()
    for load in loads { #expect(try await load.value.text == "text") }
    await fixture.manager.close()
  }

  @Test("a manager that closes with a limit ends the loads")
  func closed() async throws {
    fixture.network.respond(to: url, with: .ok("text").held(by: gate))
    let (loads, flight) = try await listed()
    let all = loads + (try await join(flight, 2))
    _ = await fixture.manager.close(within: .zero)
    for load in all { #expect((await load.result.failure as? CacheError)?.code == .closed) }
    #expect(!flights.hasListed)
    #expect(try await fixture.failure(url).code == .closed)
  }

  @Test("a cancellation by the manager ends all loads, and the next one begins anew", arguments: [true, false])
  func cancelledByManager(isOfAll: Bool) async throws {
    fixture.network.respond(to: url, with: .ok("old").held(by: gate), .ok("new", cacheControl: "max-age=60"))
    let (loads, flight) = try await listed()
    let all = loads + (try await join(flight, 5))

    if isOfAll { fixture.manager.cancelAll() } else { fixture.manager.cancel(url) }

    for load in all { #expect(await load.result.isCancellation) }
    #expect(!flights.hasListed && flights.listed(key) == nil)
    #expect(try await fixture.manager.load(url).text == "new")
    await fixture.manager.close()
  }

  @Test("a load that leaves its flight for one of its own does not escape a cancellation in between", arguments: [true, false])
  func cancelledBetween(isAlone: Bool) async throws {
    fixture.network.serve(url) { [gate] _ in .ok("text", cacheControl: "max-age=60").held(by: gate) }
    let (first, flight) = try await listed()
    var loads = first
    let core = fixture.manager.core
    // A change in another test can end the listing. The next load lists the flight again.
    var joined = core.joinable(url)
    for _ in 0..<1_000 where joined == nil {
      loads += try await join(flight, 1)
      joined = core.joinable(url)
    }
    let (_, start, id) = try #require(joined)

    fixture.manager.cancel(url)

    let error = await #expect(throws: CacheError.self) {
      try await core.resource(of: url, id, after: isAlone ? .alone : nil, startedAt: start)
    }
    #expect(error?.isCancellation == true)
    for load in loads { #expect(await load.result.isCancellation) }
    #expect(fixture.network.requests.count == 1)
    gate.open()
    await fixture.manager.close()
  }

  @Test("a stale output ends the waiters of a flight for which it is enough, also those that join later")
  func stale() async throws {
    let load = try ResolvedRequest(ResourceRequest(url), fixture.manager.core)
    let (waiter, _) = try #require(
      flights.join(.bytes(CoalescingKey(load)), load, WaiterNeeds<Flights.Done>(endsWithStale: false)))
    let flight = waiter.flight
    let present = Task { await flight.ending(WaiterNeeds()) }
    try await Polling.until(limit: 10_000) { flight.awaiting == 2 }
    flight.report(.stale(Flights.Done()))
    for ending in [await present.value, await flight.ending(WaiterNeeds())] {
      #expect({ if case .output? = ending { true } else { false } }())
    }
    #expect(flight.awaiting == 1 && flight.survivesItsWaiters)
    flight.end(.success(Flights.Done()))
    #expect(await flight.ending(WaiterNeeds()) == nil)
  }
}
