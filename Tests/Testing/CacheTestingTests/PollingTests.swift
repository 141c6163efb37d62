import CacheTesting
import Testing

@Suite("Polling")
struct PollingTests {
  @Test("polling ends as soon as the condition is true")
  func held() async throws {
    var looks = 0
    try await Polling.until {
      looks += 1
      return looks == 3
    }
    #expect(looks == 3)
  }

  @Test("polling continues when the condition takes long", arguments: [false, true])
  func late(isCancelled: Bool) async throws {
    let task = Task {
      if isCancelled { withUnsafeCurrentTask { $0?.cancel() } }
      var looks = 0
      try await Polling.until {
        looks += 1
        return looks == 10_100
      }
      return looks
    }
    #expect(try await task.value == 10_100)
  }

  @Test("polling has a limit, and the error contains the source location")
  func overdue() async {
    var looks = 0
    let error = await #expect(throws: Polling.Overdue.self) {
      try await Polling.until(limit: 5) {
        looks += 1
        return false
      }
    }
    #expect(looks == 5 && error?.polls == 5)
    #expect(error?.description.hasPrefix("CacheTestingTests/PollingTests.swift:") == true)
  }
}
