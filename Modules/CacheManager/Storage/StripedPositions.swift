/// The latest positions of events, by the hashes of their subjects, in a table of fixed size.
///
/// Subjects whose hashes have the same last bits share a position. It may therefore be later than that of the subject's own
/// event, and is never earlier.
struct StripedPositions: Sendable {
  private static let count = 1_024

  /// Empty until the first event, because most managers record none.
  private var positions: [Int] = []

  /// Records an event, whose position is later than those of earlier events.
  mutating func record(_ position: Int, for hash: Int) {
    if positions.isEmpty { positions = Array(repeating: 0, count: Self.count) }
    positions[hash & (Self.count - 1)] = position
  }

  /// Returns the position of the latest event, or 0 if there was none.
  func latest(for hash: Int) -> Int { positions.isEmpty ? 0 : positions[hash & (Self.count - 1)] }
}
