import CacheCore
import CacheTesting
import Foundation
import HTTPTypes
import Testing

@testable import CacheManager

@Suite("Waiters that share one priority")
struct WaiterPriorityTests {
  @Test("waiters of a memory budget leave no observer, and those that still wait are raised")
  func budget() async throws {
    let (budget, shared, order) = (MemoryBudget(1_000), LoadPriority(.low), CallLog())
    var first: MemoryReservation? = budget.reservation(holding: 700)
    var waiters: [Task<Void, any Error>] = []
    for number in 0..<101 {
      let priority = number == 0 ? LoadPriority(.normal) : shared
      waiters.append(
        Task {
          let head = HTTPRequest(method: .get, scheme: "https", authority: "host-\(number)", path: "/")
          let share = try await budget.start(head, priority)
          order.append("\(number)")
          share.release()
        })
      try await Polling.until { budget.use.waiting == number + 1 }
    }
    #expect(shared.observers == 100)
    for waiter in waiters[1...50] { waiter.cancel() }
    try await Polling.until { shared.observers == 50 && budget.use.waiting == 51 }

    shared.raise(to: .high)
    #expect(first != nil)
    first = nil
    for waiter in waiters { _ = await waiter.result }

    #expect(shared.observers == 0 && order.lines.count == 51)
  }

  @Test("a load that waits for memory to read the durable store is raised when a more urgent waiter joins")
  func diskRead() async throws {
    let fixture = try ManagerFixture { ($0.memoryBudget, $0.storeReadTimeout) = (80_000, nil) }
    let (budget, low, order) = (fixture.manager.core.environment.budget, LoadPriority(.low), CallLog())
    // This body exceeds the budget, so the others wait until it has ended. Each of them exceeds it too.
    let first = budget.reservation(holding: 0, LoadPriority(.normal))
    try await first.grow(to: 100_000, most: 100_000)
    var reads: [Task<Void, any Error>] = []
    for (path, priority) in [("/normal", LoadPriority(.normal)), ("/raised", low)] {
      let load = try ResolvedRequest(ResourceRequest(try fixture.url(path)), fixture.manager.core)
      let (key, now) = (CacheKey(resource: load.settings.resource), fixture.clock.now)
      let metadata = try await fixture.disk.store(
        Data(repeating: 1, count: 100_000), for: key,
        metadata: StoredMetadata(
          request: load.head, response: HTTPResponse(status: .ok), requestTime: now, responseTime: now, revision: .random(),
          freshness: Freshness(generatedAt: now, freshUntil: .distantFuture)))
      reads.append(
        Task {
          let response = try await Fetch(load, priority).response(from: Candidate(key: key, metadata: metadata))
          order.append(path)
          response?.reservation?.release()
        })
      try await Polling.until { budget.use.waiting == reads.count }
    }
    low.raise(to: .high)
    first.release()
    for read in reads { try await read.value }

    #expect(order.lines == ["/raised", "/normal"])
  }

  @Test("a shared step is raised with each waiting load, while that load waits")
  func sharedStep() async throws {
    let (flights, gate) = (Flights(InvalidationLog()), Gate())
    let (first, second) = (LoadPriority(.low), LoadPriority(.low))
    let step = FlightKey.step(Revision.random(), .init("step", of: Int.self, on: nil))
    let maker = Task {
      try await flights.output(of: step, for: LoadID(), first, joining: { _ in }) { () async throws(CacheError) -> Number in
        await gate.pass()
        return Number(value: 1)
      }
    }
    await gate.arrived()
    let joins = Counter()
    let waiter = Task {
      try await flights.output(of: step, for: LoadID(), second, joining: { _ in joins.increment() }) {
        () async throws(CacheError) -> Number in Number(value: 2)
      }
    }
    try await Polling.until { joins.value == 1 }
    second.raise(to: .high)
    #expect(first.level == .high)

    gate.open()
    #expect(try await [maker.value.value, waiter.value.value] == [1, 1])
    #expect(second.observers == 0)
  }

  private struct Number: Shareable {
    let value: Int
    var isShareable: Bool { true }
  }
}
