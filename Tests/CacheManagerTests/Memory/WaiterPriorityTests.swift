import CacheCore
import CacheTesting
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
      try await Turns.until { budget.use.waiting == number + 1 }
    }
    #expect(shared.observers == 100)
    for waiter in waiters[1...50] { waiter.cancel() }
    try await Turns.until { shared.observers == 50 && budget.use.waiting == 51 }

    shared.raise(to: .high)
    #expect(first != nil)
    first = nil
    for waiter in waiters { _ = await waiter.result }

    #expect(shared.observers == 0 && order.lines.count == 51)
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
    try await Turns.until { joins.value == 1 }
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
