import CacheCore
import CacheTesting
import Foundation
import Testing

@testable import CacheManager

@Suite("Closing the flights of a manager")
struct FlightClosingTests {
  @Test("closing waits for work that a caller leads without running code, even if its own task is cancelled")
  func closing() async throws {
    let flights = Flights(InvalidationLog())
    let executor = SteppedExecutor()
    let isClosed = Lock(false)
    let key = FlightKey.revalidation(CacheKey(resource: "a"), stores: [], limits: StoreLimits())
    let gate = Gate()
    let leading = Task {
      try await flights.output(of: key, for: LoadID(), LoadPriority()) { () async throws(CacheError) -> Flights.Done in
        await gate.pass()
        return Flights.Done()
      }
    }
    await gate.arrived()

    let closing = Task(executorPreference: executor) {
      await flights.close()
      isClosed.withLock { $0 = true }
    }
    closing.cancel()
    executor.run()
    #expect(executor.jobs == 0 && !isClosed.withLock { $0 })

    gate.open()
    _ = try await leading.value
    executor.run()
    #expect(isClosed.withLock { $0 })
  }

  @Test("closing waits for a load that was accepted before, also while no work runs for it")
  func acceptedLoad() async throws {
    let flights = Flights(InvalidationLog())
    let executor = SteppedExecutor()
    let isClosed = Lock(false)
    #expect(flights.beginLoad())

    _ = Task(executorPreference: executor) {
      await flights.close()
      isClosed.withLock { $0 = true }
    }
    executor.run()
    #expect(!flights.beginLoad() && !isClosed.withLock { $0 })

    flights.endLoad()
    executor.run()
    #expect(isClosed.withLock { $0 })
  }
}

@Suite("The table of flights")
struct FlightTableTests {
  private let flights = Flights(InvalidationLog())

  private func key(_ name: String) -> FlightKey { .revalidation(CacheKey(resource: name), stores: [], limits: StoreLimits()) }

  private func start(_ name: String, at host: String, _ work: @escaping @Sendable () async -> Void) {
    flights.startRevalidation(key(name), of: CacheKey(resource: name), at: host, id: LoadID(), LoadPriority(), work)
  }

  @Test("at most 64 revalidations ask one host, other hosts are asked meanwhile, and a later one starts when one has ended")
  func revalidationsOfHost() async throws {
    let (gate, started, others) = (Gate(), Counter(), Counter())
    for number in 0...Flights.maximumRevalidationsOfHost {
      start("\(number)", at: "silent.test") {
        started.increment()
        await gate.pass()
      }
    }
    try await Polling.until { started.value == Flights.maximumRevalidationsOfHost }
    start("other", at: "other.test") { others.increment() }
    try await Polling.until { others.value == 1 }
    #expect(started.value == Flights.maximumRevalidationsOfHost)
    gate.open()
    try await Polling.until {
      start("late", at: "silent.test") { started.increment() }
      return started.value > Flights.maximumRevalidationsOfHost
    }
    await flights.close()
  }

  @Test("at most 256 revalidations run in the background")
  func revalidationLimit() async throws {
    let (gate, started) = (Gate(), Counter())
    for number in 0...Flights.maximumRevalidations {
      start("\(number)", at: "\(number).test") {
        started.increment()
        await gate.pass()
      }
    }
    try await Polling.until { started.value == Flights.maximumRevalidations }
    gate.open()
    await flights.close()
    #expect(started.value == Flights.maximumRevalidations)
  }

  @Test("one revalidation of a resource runs at a time, and none starts after the manager has closed")
  func oneRevalidation() async throws {
    let (gate, started) = (Gate(), Counter())
    for _ in 0..<2 {
      start("a", at: "origin.test") {
        started.increment()
        await gate.pass()
      }
    }
    await gate.arrived()
    gate.open()
    await flights.close()
    start("a", at: "origin.test") { started.increment() }
    #expect(started.value == 1)
  }

  @Test("after a cancellation, another revalidation of the resource starts at once, and ended ones make room for others")
  func cancelledRevalidations() async throws {
    let (gate, started) = (Gate(), Counter())
    func startAll() {
      for number in 0..<Flights.maximumRevalidationsOfHost {
        start("\(number)", at: "silent.test") {
          started.increment()
          await Task.detached { await gate.pass() }.value
        }
      }
    }
    start("a", at: "origin.test") { await Task.detached { await gate.pass() }.value }
    await gate.arrived()
    flights.cancelLoads(of: CacheKey(resource: "a"))
    start("a", at: "origin.test") { started.increment() }
    try await Polling.until { started.value == 1 }

    startAll()
    try await Polling.until { started.value == 1 + Flights.maximumRevalidationsOfHost }
    flights.cancelLoads(of: nil)
    gate.open()
    try await Polling.until {
      start("late", at: "silent.test") { started.increment() }
      return started.value > 1 + Flights.maximumRevalidationsOfHost
    }
    await flights.close()
  }

  @Test("a lookup is invalid after the end of a flight that a later one has replaced")
  func replaced() throws {
    let fixture = try ManagerFixture()
    let flights = fixture.manager.core.flights
    let load = try ResolvedRequest(ResourceRequest(fixture.url), fixture.manager.core)
    let key = FlightKey.bytes(CoalescingKey(load))
    let (former, _) = try #require(flights.join(key, load, WaiterNeeds<Exchange>()))
    fixture.manager.core.environment.invalidations.advance(removing: load.settings.resource)
    let (later, isNew) = try #require(flights.join(key, load, WaiterNeeds<Exchange>()))
    #expect(isNew)
    let position = flights.endPosition

    former.flight.end(.failure(.cancelled))
    #expect(flights.endPosition > position)
    later.flight.end(.failure(.cancelled))
  }
}
