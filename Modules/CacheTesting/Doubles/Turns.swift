/// Waits of a test for what another task does soon, where nobody can be told of it.
package enum Turns {
  /// What did not come about.
  package struct Overdue: Error, CustomStringConvertible {
    package let turns: Int
    package let place: String

    package var description: String { "\(place): what was waited for has not come about after \(turns) turns of other tasks" }
  }

  /// How many looks follow one another as fast as other tasks let them.
  private static let fastLooks = 10_000

  /// Returns when the condition holds; other tasks run between two looks. What takes long is looked at once in a millisecond: who
  /// waits takes no processor away from what it waits for.
  ///
  /// - Parameters:
  ///   - limit: looks; a number and no time, so that a slow machine only takes longer.
  ///   - file: of the test.
  ///   - line: of the test.
  ///   - condition: cheap, since it is asked often.
  /// - Throws: ``Overdue`` when it does not hold after `limit` looks, so that a test fails there instead of hanging; what the
  ///   condition throws.
  package static func until(
    limit: Int = 1_000_000, file: StaticString = #fileID, line: UInt = #line, _ condition: () async throws -> Bool
  ) async throws {
    for look in 0..<limit {
      if try await condition() { return }
      // Who is cancelled sleeps no more: a sleep would end at once, and be no turn for anybody else.
      if look < fastLooks || Task.isCancelled { await Task.yield() } else { try? await Task.sleep(for: .milliseconds(1)) }
    }
    throw Overdue(turns: limit, place: "\(file):\(line)")
  }
}
