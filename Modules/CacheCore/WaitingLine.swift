/// Who waits for the same thing, and who is next: the most urgent, and of equals the first or the last that came; but now and then who has waited longest.
package struct WaitingLine {
  /// Given out in the order of arrival.
  package typealias Ticket = UInt64

  /// The smaller, the sooner.
  package struct Rank: Comparable {
    let level: LoadPriority.Level
    let place: Int64

    package static func < (a: Self, b: Self) -> Bool { a.level == b.level ? a.place < b.place : a.level > b.level }
  }

  /// Every so many-th turn is for who has waited longest.
  package static let turn = 8

  private let isLastFirst: Bool
  private var ranked = IndexedHeap<Ticket, Rank>()
  private var aged = IndexedHeap<Ticket, Ticket>()
  private var served = 0

  /// - Parameter isLastFirst: of equals the last that came is next, and not the first.
  package init(isLastFirst: Bool = false) { self.isLastFirst = isLastFirst }

  package var isEmpty: Bool { ranked.isEmpty }
  package var count: Int { ranked.count }

  /// The most urgent one's.
  package var bestRank: Rank? { ranked.first?.rank }

  /// Of those who wait, the one that came first.
  package var oldest: Ticket? { aged.first?.member }

  /// - Parameter isTurn: it is the longest waiting one's turn, whatever this line has served.
  package func next(isTurn: Bool = false) -> Ticket? {
    isTurn || served % Self.turn == Self.turn - 1 ? aged.first?.member : ranked.first?.member
  }

  /// Enters somebody, or gives who waits another urgency.
  package mutating func set(_ ticket: Ticket, _ level: LoadPriority.Level) {
    let place = Int64(clamping: ticket)
    ranked.set(ticket, Rank(level: level, place: isLastFirst ? -place : place))
    aged.set(ticket, ticket)
  }

  /// - Returns: whether it waited.
  @discardableResult
  package mutating func remove(_ ticket: Ticket) -> Bool {
    aged.remove(ticket)
    return ranked.remove(ticket)
  }

  /// One has had its turn.
  package mutating func countServed() { served += 1 }
}
