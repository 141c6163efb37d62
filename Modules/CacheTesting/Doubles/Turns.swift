/// Polling for tests that wait for another task when no event reports the change.
package enum Turns {
  /// The error of a condition that stayed false.
  package struct Overdue: Error, CustomStringConvertible {
    package let turns: Int
    package let place: String

    package var description: String { "\(place): the condition is still false after \(turns) turns" }
  }

  /// The number of polls that only yield to other tasks.
  private static let fastPolls = 10_000

  /// Returns when the condition is true. Other tasks run between two polls. After the first polls, the interval is a
  /// millisecond, so that polling takes no CPU time from the awaited work.
  ///
  /// - Parameters:
  ///   - limit: The maximum number of polls. It is not a time, so a slow machine only takes longer.
  ///   - file: The file of the caller.
  ///   - line: The line of the caller.
  ///   - condition: The condition, which is evaluated often and should be cheap.
  /// - Throws: ``Overdue`` if the condition is false after `limit` polls, so that a test fails instead of hanging, and
  ///   the errors of the condition.
  package static func until(
    limit: Int = 1_000_000, file: StaticString = #fileID, line: UInt = #line, _ condition: () async throws -> Bool
  ) async throws {
    for poll in 0..<limit {
      if try await condition() { return }
      // In a cancelled task, a sleep returns immediately and lets no other task run, so yield instead.
      if poll < fastPolls || Task.isCancelled { await Task.yield() } else { try? await Task.sleep(for: .milliseconds(1)) }
    }
    throw Overdue(turns: limit, place: "\(file):\(line)")
  }
}
