/// Waits of a test for what another task does soon, where nobody can be told of it.
package enum Turns {
  /// What did not come about.
  package struct Overdue: Error, CustomStringConvertible {
    package let turns: Int
    package let place: String

    package var description: String { "\(place): what was waited for has not come about after \(turns) turns of other tasks" }
  }

  /// Returns when the condition holds; other tasks run between two looks.
  ///
  /// - Parameters:
  ///   - limit: looks; a number and no time, so that a slow machine only takes longer.
  ///   - file: of the test.
  ///   - line: of the test.
  ///   - condition: cheap, since it is asked often.
  /// - Throws: ``Overdue`` when it does not hold after `limit` looks, so that a test fails there instead of hanging; what the condition throws.
  package static func until(
    limit: Int = 10_000_000, file: StaticString = #fileID, line: UInt = #line, _ condition: () throws -> Bool
  ) async throws {
    for _ in 0..<limit {
      if try condition() { return }
      await Task.yield()
    }
    throw Overdue(turns: limit, place: "\(file):\(line)")
  }
}
