import CacheCore
import CacheTesting
import Foundation
import Testing

@testable import CacheManager

@Suite("Closing between the creation and the start of a flight")
final class ClosingRaceTests: Sendable {
  private let fixture: ManagerFixture
  private let flights = Flights(InvalidationLog())

  init() throws { fixture = try ManagerFixture() }

  /// Joins a waiter, for which a flight is created. `act` runs before the flight starts.
  private func join(before act: (Waiter<Flights.Done>) throws -> Void) throws -> Waiter<Flights.Done> {
    let load = try ResolvedRequest(ResourceRequest(fixture.url), fixture.manager.core)
    let (waiter, isNew) = try #require(flights.join(.bytes(CoalescingKey(load)), load, WaiterNeeds<Flights.Done>()))
    #expect(isNew)
    try act(waiter)
    waiter.flight.start { waiter.flight.end(.failure(CacheError(.offline, reason: "offline"))) }
    return waiter
  }

  private func code(_ waiter: Waiter<Flights.Done>) async -> CacheError.Code? {
    guard case .ended(.failed(let error)) = await waiter.next() else { return nil }
    return error.code
  }

  @Test("a flight that closing reaches before it has started has its waiter, starts and ends")
  func retired() async throws {
    var closing: Task<Void, Never>?
    let waiter = try join { waiter in
      #if canImport(Darwin)
      closing = Task { [flights] in await flights.close() }
      waiter.flight.retire()
      #else
      // Runs until it waits for the end of the flight.
      closing = Task.immediate { [flights] in await flights.close() }
      #expect(flights.isClosed)
      #endif
    }
    #expect(await code(waiter) == .offline)
    await closing?.value
  }

  @Test("a flight has its first waiter from its creation, so closing does not end it before that waiter is linked")
  func created() async throws {
    let waiter = try join { waiter in
      waiter.flight.retire()
      #expect(waiter.flight.awaiting > 0)
    }
    #expect(await code(waiter) == .offline)
    #expect(waiter.flight.awaiting == 0)
  }

  @Test("a flight whose waiters are dismissed before it has started ends without work")
  func dismissed() async throws {
    let waiter = try join { _ in flights.dismissWaiters(CacheError(.closed, reason: "closed")) }
    #expect(await code(waiter) == .closed)
    await flights.close()
  }

  @Test("a flight whose waiters are dismissed accepts no more, even if its work continues")
  func joining() async throws {
    _ = try join { waiter in
      waiter.flight.report(.stale(Flights.Done()))
      #expect(waiter.flight.survivesItsWaiters && waiter.flight.awaiting == 0)
      flights.dismissWaiters(CacheError(.closed, reason: "closed"))
      #expect(waiter.flight.join(WaiterNeeds()) == nil)
    }
    await flights.close()
  }

  @Test("while the manager closes, work ends when a stale output was enough for its last waiter")
  func satisfied() async throws {
    let load = try ResolvedRequest(ResourceRequest(fixture.url), fixture.manager.core)
    let (waiter, _) = try #require(flights.join(.bytes(CoalescingKey(load)), load, WaiterNeeds<Flights.Done>()))
    let (gate, end) = (Gate(), Gate(isOpen: true))
    waiter.flight.start {
      await gate.pass()
      await end.pass()
      waiter.flight.end(.failure(.cancelled))
    }
    await gate.arrived()
    waiter.flight.retire()
    waiter.flight.report(.stale(Flights.Done()))
    let event = await waiter.next()
    #expect({ if case .ended(.output) = event { true } else { false } }())
    // The gate is closed, so only a cancellation ends the work.
    try await Polling.until(limit: 10_000) { end.arrivals > 0 }
  }

  @Test("a load whose flight was replaced ends its work although the other flight runs on")
  func replaced() async throws {
    let (observer, gates) = (fixture.observer, [Gate(), Gate()])
    fixture.network.respond(
      to: fixture.url, with: .ok("first").bodyHeld(by: gates[0]), .ok("second").bodyHeld(by: gates[1]))
    let first = Task { [fixture] in try await fixture.manager.load(fixture.url).text }
    await gates[0].arrived()
    // A response that was requested before a purge is not for later loads.
    try await fixture.manager.clear()
    let second = Task { [fixture] in try await fixture.manager.load(fixture.url).text }
    await gates[1].arrived()

    gates[0].open()
    #expect(try await first.value == "first")
    let load = try #require(observer.loads.first)
    try await Polling.until(limit: 10_000) {
      observer.events(of: load).contains { if case .workEnded = $0 { true } else { false } }
    }
    gates[1].open()
    #expect(try await second.value == "second")
  }

  @Test("a cancellation before the waiter has joined reaches it when it joins, and no work starts")
  func earlyCancellation() async throws {
    let load = try ResolvedRequest(ResourceRequest(fixture.url), fixture.manager.core)
    let ending = try await Task { [flights] in
      withUnsafeCurrentTask { $0?.cancel() }
      let (waiter, _) = try #require(flights.join(.bytes(CoalescingKey(load)), load, WaiterNeeds<Flights.Done>()))
      return await waiter.ending(joined: {
        waiter.flight.start {
          #expect(Bool(false), "the work started")
          waiter.flight.end(.failure(.cancelled))
        }
      })
    }.value
    guard case .failed(let error) = ending else { return #expect(Bool(false), "the load did not fail") }
    #expect(error.isCancellation)
    await flights.close()
  }

  @Test(
    "a cancellation or a deadline before the start of a load reaches it when it joins, and no work starts",
    arguments: [true, false])
  func earlyEnd(isCancelled: Bool) async throws {
    let core = fixture.manager.core
    let load = try ResolvedRequest(ResourceRequest(fixture.url, options: RequestOptions { $0.timeout = .seconds(5) }), core)
    let task = LoadTask(priority: LoadPriority())
    if isCancelled { task.cancel() }
    let form = BytesForm<Data>(core: core)
    let result = await core.run(
      load, form, WaiterNeeds(), task, startedAt: load.clock.uptime - .seconds(isCancelled ? 0 : 5))

    guard case .failure(let error) = result else { return #expect(Bool(false), "the load did not fail") }
    #expect(error.code == (isCancelled ? .cancelled : .timedOut))
    #expect(fixture.network.requests.isEmpty)
    await fixture.manager.close()
  }
}
