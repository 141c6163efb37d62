import Testing

@testable import CacheCore

@Suite("Sleeping tasks", .timeLimit(.minutes(30))) struct SleepQueueTests {
  private let queue = SleepQueue()
  private let clock = SystemClock()

  @Test("a task sleeps at least as long as it wants, however the others sleep")
  func durations() async throws {
    try await withThrowingTaskGroup(of: Void.self) { group in
      for index in 0..<400 {
        let duration = Duration.milliseconds(index * 37 % 100)
        group.addTask {
          let start = clock.uptime
          try await queue.sleep(for: duration)
          #expect(clock.uptime - start >= duration)
        }
      }
      try await group.waitForAll()
    }
    #expect(queue.isEmpty)
  }

  @Test("a short sleep that begins after a long one ends first")
  func earlier() async throws {
    let long = Task { try await queue.sleep(for: .seconds(86_400 * 365 * 1_000)) }
    while queue.count != 1 { await Task.yield() }
    try await queue.sleep(for: .milliseconds(1))
    #expect(queue.count == 1)
    long.cancel()
    await #expect(throws: CancellationError.self) { try await long.value }
    #expect(queue.isEmpty)
  }

  @Test("a sleep of no time ends at once, and a cancelled task does not sleep")
  func nothing() async throws {
    for duration in [Duration.zero, .seconds(-1)] { try await queue.sleep(for: duration) }
    let task = Task {
      while !Task.isCancelled { await Task.yield() }
      for duration in [Duration.zero, .seconds(86_400)] {
        await #expect(throws: CancellationError.self) { try await queue.sleep(for: duration) }
      }
    }
    task.cancel()
    await task.value
    #expect(queue.isEmpty)
  }

  @Test("a cancelled sleep leaves nothing behind, whenever it is cancelled")
  func cancelled() async {
    for round in 0..<20 {
      await withTaskGroup(of: Void.self) { group in
        for index in 0..<200 {
          let task = Task { try await queue.sleep(for: index.isMultiple(of: 2) ? .seconds(86_400) : .microseconds(index)) }
          group.addTask {
            for _ in 0..<(index * round % 7) { await Task.yield() }
            task.cancel()
            _ = await task.result
          }
        }
      }
      #expect(queue.isEmpty)
    }
  }

  @Test("a queue that is released with its last sleeper ends")
  func released() async throws {
    weak var released: SleepQueue?
    do {
      let queue = SleepQueue()
      released = queue
      try await queue.sleep(for: .milliseconds(1))
    }
    while released != nil { await Task.yield() }
    #expect(released == nil)
  }
}
