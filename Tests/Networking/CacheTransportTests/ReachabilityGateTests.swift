import CacheCore
import CacheTesting
import Testing

@testable import CacheTransport

@Suite("Reachability gates")
struct ReachabilityGateTests {
  @Test("a gate is initially open")
  func open() async throws {
    let gate = ReachabilityGate()
    #expect(gate.isOpen)
    try await gate.pass()
  }

  @Test("a closed gate blocks all waiters, and opening it resumes them")
  func closed() async throws {
    let gate = ReachabilityGate()
    gate.set(isOpen: false)
    let waiting = (0..<50).map { _ in Task { try await gate.pass() } }
    gate.set(isOpen: false)
    #expect(!gate.isOpen)
    gate.set(isOpen: true)
    for task in waiting { try await task.value }
  }

  @Test("a task cancelled before or during its wait gets an error", arguments: [false, true])
  func cancelled(_ isEarly: Bool) async throws {
    let gate = ReachabilityGate()
    gate.set(isOpen: false)
    let task = Task {
      if isEarly { try await Polling.until { Task.isCancelled } }
      try await gate.pass()
    }
    if !isEarly { await Task.yield() }
    task.cancel()
    await #expect(throws: CancellationError.self) { try await task.value }
  }
}
