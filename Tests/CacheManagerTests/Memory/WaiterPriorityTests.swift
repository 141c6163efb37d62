import CacheCore
import CacheTesting
import Testing

@testable import CacheManager

@Suite("Waiters that share one priority")
struct WaiterPriorityTests {
  @Test("waiters of a memory budget leave no observer, and those that still wait are raised")
  func budget() async throws {
    let (budget, shared, order) = (MemoryBudget(1_000), LoadPriority(.low), CallLog())
    var first: MemoryShare? = budget.share(holding: 700)
    var waiters: [Task<Void, any Error>] = []
    for number in 0..<101 {
      let priority = number == 0 ? LoadPriority(.normal) : shared
      waiters.append(
        Task {
          let share = try await budget.place(priority, upTo: 500, isNested: false)
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
}
