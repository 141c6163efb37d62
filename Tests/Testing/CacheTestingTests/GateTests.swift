import CacheTesting
import Testing

@Suite("Gates", .timeLimit(.minutes(30)))
struct GateTests {
  @Test("a gate holds arrivals until it opens, and lets later ones through")
  func opens() async {
    let gate = Gate()
    let tasks = (0..<3).map { _ in Task { await gate.pass() } }
    await gate.arrived(3)
    #expect(gate.held == 3)
    gate.open()
    for task in tasks { await task.value }
    #expect(gate.held == 0)
    await gate.pass()
    #expect(gate.arrivals == 4)
  }

  @Test("an open gate holds no arrival, and holds again after it is closed")
  func closes() async {
    let gate = Gate(isOpen: true)
    await gate.pass()
    gate.close()
    let task = Task { await gate.pass() }
    await gate.arrived(2)
    #expect(gate.held == 1)
    gate.open()
    await task.value
  }

  @Test("a gate lets the given number through, oldest first, and applies the rest to later arrivals")
  func letsThrough() async {
    // Given
    let gate = Gate()
    let log = Log()
    var tasks: [Task<Void, Never>] = []
    for name in ["a", "b"] {
      tasks.append(
        Task {
          await gate.pass()
          log.add(name)
        })
      await gate.arrived(tasks.count)
    }

    // When, then
    gate.letThrough()
    await tasks[0].value
    #expect(log.all == ["a"])
    #expect(gate.held == 1)

    gate.letThrough(2)
    await tasks[1].value
    await gate.pass()
    #expect(gate.held == 0)
    #expect(gate.arrivals == 3)
  }

  @Test("a gate releases and forgets a cancelled task")
  func cancellation() async {
    let gate = Gate()
    let task = Task { await gate.pass() }
    await gate.arrived()
    task.cancel()
    await task.value
    await gate.emptied()
    #expect(gate.held == 0)
    #expect(gate.arrivals == 1)
  }

  @Test("a gate releases a cancelled waiter")
  func cancelledWaiter() async {
    let gate = Gate()
    let waiter = Task { await gate.arrived(5) }
    waiter.cancel()
    await waiter.value
    #expect(gate.arrivals == 0)
  }
}
