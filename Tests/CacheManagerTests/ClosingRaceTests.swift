import CacheCore
import CacheTesting
import Foundation
import Testing

@testable import CacheManager

@Suite("Closing between the creation and the start of a flight")
final class ClosingRaceTests: Sendable {
  private let fixture: ManagerFixture
  private let flights = Flights(InvalidationLog())
  private let waiter = Waiter<Exchange>(LoadPriority())

  init() throws { fixture = try ManagerFixture() }

  /// Joins a waiter, for which a flight is created. `act` runs before the flight starts.
  private func join(before act: (Flight<Exchange>) -> Void) throws -> Flight<Exchange> {
    let load = try ResolvedRequest(ResourceRequest(fixture.url), fixture.manager.core)
    let (flight, isNew) = try #require(flights.join(.bytes(CoalescingKey(load)), load, waiter))
    #expect(isNew)
    act(flight)
    flight.start { _ in .failure(CacheError(.offline, reason: "offline")) }
    return flight
  }

  private func code() async -> CacheError.Code? {
    guard case .end(.failure(let error)) = await waiter.next() else { return nil }
    return error.code
  }

  @Test("a flight that closing reaches before it has started has its waiter, starts and ends")
  func retired() async throws {
    var closing: Task<Void, Never>?
    _ = try join { flight in
      #if canImport(Darwin)
      closing = Task { [flights] in await flights.close() }
      flight.retire()
      #else
      // Runs until it waits for the end of the flight.
      closing = Task.immediate { [flights] in await flights.close() }
      #expect(flights.isClosed)
      #endif
    }
    #expect(await code() == .offline)
    await closing?.value
  }

  @Test("a flight has its first waiter from its creation, so closing does not end it before that waiter is linked")
  func created() async throws {
    let flight = try join { flight in
      flight.retire()
      #expect(flight.isAwaited)
    }
    #expect(await code() == .offline)
    #expect(!flight.isAwaited)
  }

  @Test("a flight whose waiters are dismissed before it has started ends without work")
  func dismissed() async throws {
    _ = try join { _ in flights.dismissWaiters(CacheError(.closed, reason: "closed")) }
    #expect(await code() == .closed)
    await flights.close()
  }

  @Test("a flight whose waiters are dismissed accepts no more, even if its work continues")
  func joining() async throws {
    _ = try join { flight in
      flight.leave(waiter, .satisfied)
      flights.dismissWaiters(CacheError(.closed, reason: "closed"))
      #expect(!flight.join(Waiter(LoadPriority())))
    }
    await flights.close()
  }

  @Test("a cancellation before the waiter has joined reaches it when it joins, and no work starts")
  func earlyCancellation() async throws {
    waiter.leave(.failed(.cancelled))
    let load = try ResolvedRequest(ResourceRequest(fixture.url), fixture.manager.core)
    let (flight, _) = try #require(flights.join(.bytes(CoalescingKey(load)), load, waiter))
    flight.start { _ in
      #expect(Bool(false), "the work started")
      return .failure(.cancelled)
    }
    #expect(await code() == .cancelled)
    await flights.close()
  }
}
