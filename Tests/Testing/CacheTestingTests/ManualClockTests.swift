import CacheCore
import CacheTesting
import Dispatch
import Testing

@Suite("Manual clock", .timeLimit(.minutes(30)))
struct ManualClockTests {
  private let clock = ManualClock(now: Timestamp(seconds: 1_000))

  @Test("the clock advances only when it is moved, with both readings")
  func moves() {
    #expect(clock.now == Timestamp(seconds: 1_000))
    #expect(clock.uptime == .zero)
    clock.advance(by: .seconds(5))
    #expect(clock.now == Timestamp(seconds: 1_005))
    #expect(clock.uptime == .seconds(5))
  }

  @Test("setting the wall time does not affect sleepers")
  func setNow() async throws {
    let sleeper = Task { [clock] in try await clock.sleep(for: .seconds(10)) }
    await clock.sleepers(1)
    clock.setNow(Timestamp(seconds: 9_999))
    #expect(clock.now == Timestamp(seconds: 9_999))
    #expect(clock.uptime == .zero)
    #expect(clock.pendingSleeps == 1)
    clock.advance(by: .seconds(10))
    try await sleeper.value
  }

  @Test("a sleeper wakes at its deadline and not before")
  func deadline() async throws {
    let sleeper = Task { [clock] in try await clock.sleep(for: .seconds(10)) }
    await clock.sleepers(1)
    clock.advance(by: .seconds(10) - .nanoseconds(1))
    #expect(clock.pendingSleeps == 1)
    clock.advance(by: .nanoseconds(1))
    #expect(clock.pendingSleeps == 0)
    try await sleeper.value
  }

  // A task that prefers a serial queue runs completely on that queue, so tasks run in the order in which they are
  // resumed. (On the main actor, the clock's `sleep` would end on the shared pool, whose threads race with each other.)
  @Test("sleepers wake in the order of their deadlines, and then of their arrival")
  func order() async throws {
    // Given
    let log = Log()
    let line = ProcessingExecutor(queue: DispatchQueue(label: "sleepers"))
    var sleepers: [Task<Void, any Error>] = []
    for (index, seconds) in [30, 10, 20, 10].enumerated() {
      sleepers.append(
        Task(executorPreference: line) { [clock] in
          try await clock.sleep(for: .seconds(seconds))
          log.add("\(seconds) #\(index)")
        })
      await clock.sleepers(index + 1)
    }

    // When
    clock.advance(by: .seconds(60))
    for sleeper in sleepers { try await sleeper.value }

    // Then
    #expect(log.all == ["10 #1", "10 #3", "20 #2", "30 #0"])
  }

  @Test("an advance past a sleep waits until that sleep begins, and leaves longer ones")
  func advancePastSleep() async throws {
    let other = Task { [clock] in try await clock.sleep(for: .seconds(60)) }
    await clock.sleepers(1)
    let advance = Task { [clock] in await clock.advance(pastSleepOf: .seconds(5)) }
    let sleeper = Task { [clock] in try await clock.sleep(for: .seconds(5)) }
    try await sleeper.value
    await advance.value
    #expect(clock.uptime == .seconds(5))
    #expect(clock.pendingSleeps == 1)
    // The rest of the other sleep.
    await clock.advance(pastSleepOf: .seconds(55))
    try await other.value
    #expect(clock.now == Timestamp(seconds: 1_060))
  }

  @Test("an advance past a sleep that never begins ends with its task, and does not move the clock")
  func cancelledAdvance() async {
    let advance = Task { [clock] in await clock.advance(pastSleepOf: .seconds(5)) }
    let count = Task { [clock] in await clock.sleepers(1) }
    advance.cancel()
    count.cancel()
    await advance.value
    await count.value
    #expect(clock.uptime == .zero)
  }

  @Test("a sleep of zero or less returns immediately", arguments: [Duration.zero, .seconds(-1)])
  func nothingToSleep(_ duration: Duration) async throws {
    try await clock.sleep(for: duration)
    #expect(clock.pendingSleeps == 0)
  }

  @Test("only a cancelled sleeper is released")
  func cancellation() async throws {
    let (one, other) = (
      Task { [clock] in try await clock.sleep(for: .seconds(10)) }, Task { [clock] in try await clock.sleep(for: .seconds(10)) }
    )
    await clock.sleepers(2)
    one.cancel()
    await #expect(throws: CancellationError.self) { try await one.value }
    #expect(clock.pendingSleeps == 1)
    clock.advance(by: .seconds(10))
    try await other.value
  }

  @Test("a task that is already cancelled does not sleep")
  func cancelledBefore() async {
    let gate = Gate()
    let sleeper = Task { [clock] in
      await gate.pass()
      try await clock.sleep(for: .seconds(10))
    }
    sleeper.cancel()
    gate.open()
    await #expect(throws: CancellationError.self) { try await sleeper.value }
    #expect(clock.pendingSleeps == 0)
  }
}
