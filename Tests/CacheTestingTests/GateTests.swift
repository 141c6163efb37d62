import CacheTesting
import Testing

@Suite("A gate", .timeLimit(.minutes(30)))
struct GateTests {
  @Test("holds what comes until it opens, and lets the rest through")
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

  @Test("that is open holds nobody, and holds again when it is closed")
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

  @Test("lets so many through, those held longest first, and keeps what is left over for later ones")
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

  @Test("lets a cancelled task go, and forgets it")
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

  @Test("tells a cancelled waiter nothing, and holds him up no longer")
  func cancelledWaiter() async {
    let gate = Gate()
    let waiter = Task { await gate.arrived(5) }
    waiter.cancel()
    await waiter.value
    #expect(gate.arrivals == 0)
  }
}
