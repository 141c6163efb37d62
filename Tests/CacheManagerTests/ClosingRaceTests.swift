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

  /// Creates a coalesced load as the coalescer does. No thread has started it yet.
  private func created() throws -> CoalescedLoad<LoadOutcome> {
    let load = try ResolvedRequest(ResourceRequest(fixture.url), fixture.manager.core)
    return CoalescedLoad(
      id: load.id, in: coalescer, as: CoalescedLoadID(request: CoalescingKey(load)), number: 1, logPosition: 0,
      priority: LoadPriority(), representation: nil, first: waiter)
  }

  private var waiter: CoalescedLoad<LoadOutcome>.Waiter {
    .init { message in
      if case .end(let result) = message { self.outcomes.withLock { $0.append(result) } }
    }
  }

  private func start(_ load: CoalescedLoad<LoadOutcome>) {
    load.start { _ in .failure(CacheError(.offline, reason: "offline")) }
  }

  private var codes: [CacheError.Code] {
    outcomes.withLock { outcomes in
      outcomes.compactMap { if case .failure(let error) = $0 { error.code } else { nil } }
    }
  }

  @Test("a load that closing reaches before it has started has its waiter, starts and ends")
  func retired() async throws {
    let load = try created()
    load.retire()
    start(load)
    await load.ended()
    #expect(codes == [.offline])
  }

  @Test("a load whose waiters are dismissed before it has started ends without work")
  func dismissed() async throws {
    let load = try created()
    load.dismissWaiters(CacheError(.closed, reason: "closed"))
    start(load)
    await load.ended()
    #expect(codes == [.closed])
  }

  @Test("a load whose waiters are dismissed accepts no more, even if its work continues")
  func joining() async throws {
    let load = try created()
    load.leave(CoalescedLoad<LoadOutcome>.firstToken, .satisfied)
    load.dismissWaiters(CacheError(.closed, reason: "closed"))
    #expect(load.join(waiter) == nil)
    start(load)
    await load.ended()
  }
}
