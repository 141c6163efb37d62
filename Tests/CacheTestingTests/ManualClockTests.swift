import CacheCore
import CacheTesting
import Dispatch
import Testing

@Suite("The manual clock", .timeLimit(.minutes(30)))
struct ManualClockTests {
  private let clock = ManualClock(now: Timestamp(seconds: 1_000))

  @Test("stands still until it is moved, and moves both readings")
  func moves() {
    #expect(clock.now == Timestamp(seconds: 1_000))
    #expect(clock.uptime == .zero)
    clock.advance(by: .seconds(5))
    #expect(clock.now == Timestamp(seconds: 1_005))
    #expect(clock.uptime == .seconds(5))
  }

  @Test("can be set like a machine's clock: sleepers sleep on")
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

  @Test("wakes at the deadline and not before")
  func deadline() async throws {
    let sleeper = Task { [clock] in try await clock.sleep(for: .seconds(10)) }
    await clock.sleepers(1)
    clock.advance(by: .seconds(10) - .nanoseconds(1))
    #expect(clock.pendingSleeps == 1)
    clock.advance(by: .nanoseconds(1))
    #expect(clock.pendingSleeps == 0)
    try await sleeper.value
  }

  // A task that prefers a serial queue runs every part of itself there: what is resumed first runs first. (On the main actor the
  // clock's own `sleep` would still end on the shared pool, whose threads race each other.)
  @Test("wakes sleepers in the order of their deadlines, equal ones in the order of their coming")
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

  @Test("lets a sleep of zero or less return at once", arguments: [Duration.zero, .seconds(-1)])
  func nothingToSleep(_ duration: Duration) async throws {
    try await clock.sleep(for: duration)
    #expect(clock.pendingSleeps == 0)
  }

  @Test("lets a cancelled sleeper go, and no other")
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

  @Test("does not let a task sleep that was cancelled before")
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
