import CacheCore
import CacheTesting
import Foundation
import Testing

@testable import CacheManager

@Suite("Closing between the creation and the start of a coalesced load")
final class ClosingRaceTests: Sendable {
  private let fixture: ManagerFixture
  private let coalescer = RequestCoalescer()
  private let outcomes = Lock<[Result<LoadOutcome, CacheError>]>([])

  init() throws { fixture = try ManagerFixture() }

  /// Joins the coalescer, which creates a load. `act` runs before the load starts.
  private func join(before act: (CoalescedLoad<LoadOutcome>) -> Void) throws -> CoalescedLoad<LoadOutcome> {
    let load = try ResolvedRequest(ResourceRequest(fixture.url), fixture.manager.core)
    var created: CoalescedLoad<LoadOutcome>?
    let isAccepted = coalescer.join(
      CoalescedLoadID(request: CoalescingKey(load)), load, alone: false,
      task: LoadTask(id: load.id, priority: LoadPriority(load.priority)), waiter: waiter
    ) { (load: CoalescedLoad<LoadOutcome>) in
      created = load
      act(load)
      load.start { _ in .failure(CacheError(.offline, reason: "offline")) }
    }
    #expect(isAccepted)
    return try #require(created)
  }

  private var waiter: CoalescedLoad<LoadOutcome>.Waiter {
    .init { message in
      if case .end(let result) = message { self.outcomes.withLock { $0.append(result) } }
    }
  }

  private var codes: [CacheError.Code] {
    outcomes.withLock { outcomes in
      outcomes.compactMap { if case .failure(let error) = $0 { error.code } else { nil } }
    }
  }

  @Test("a load that closing reaches before it has started has its waiter, starts and ends")
  func retired() async throws {
    var closing: Task<Void, Never>?
    let load = try join { load in
      #if canImport(Darwin)
      closing = Task { [coalescer] in await coalescer.close() }
      load.retire()
      #else
      // Runs until it waits for the end of the load.
      closing = Task.immediate { [coalescer] in await coalescer.close() }
      #expect(coalescer.isClosed)
      #endif
    }
    await load.ended()
    await closing?.value
    #expect(codes == [.offline])
  }

  @Test("a load whose waiters are dismissed before it has started ends without work")
  func dismissed() async throws {
    let load = try join { _ in coalescer.dismissWaiters(CacheError(.closed, reason: "closed")) }
    await load.ended()
    #expect(codes == [.closed])
  }

  @Test("a load whose waiters are dismissed accepts no more, even if its work continues")
  func joining() async throws {
    let load = try join { load in
      load.leave(CoalescedLoad<LoadOutcome>.firstToken, .satisfied)
      coalescer.dismissWaiters(CacheError(.closed, reason: "closed"))
      #expect(load.join(waiter) == nil)
    }
    await load.ended()
  }
}
