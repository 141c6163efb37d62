/// A queue of waiters, ordered by priority. Within one level, the first or the last waiter to arrive comes first.
///
/// Each operation is O(log n). The queue stores the level of each waiter, so it reads no ``LoadPriority`` to choose the next one.
/// ``raise(_:to:)`` updates the level.
package struct PriorityQueue {
  /// The number of a waiter, assigned in the order of arrival.
  package typealias Ticket = UInt64

  /// The rank of a waiter. The smallest rank is served first.
  package struct Rank: Comparable {
    fileprivate var level: LoadPriority.Level
    /// Whether the waiter continues work that it has begun. Such a waiter precedes the others of its level.
    fileprivate let isContinuing: Bool
    fileprivate let place: Int64

    package static func < (a: Self, b: Self) -> Bool {
      if a.level != b.level { return a.level > b.level }
      if a.isContinuing != b.isContinuing { return a.isContinuing }
      return a.place < b.place
    }
  }

  /// The number of turns per turn of the oldest waiter, if turns are counted.
  package static let turn = 8

  private let newestFirst: Bool
  private var ranked = IndexedHeap<Ticket, Rank>()
  private var aged = IndexedHeap<Ticket, Ticket>()
  private var served = 0

  /// - Parameter newestFirst: Whether the last waiter to arrive is served first within a level.
  package init(newestFirst: Bool = false) { self.newestFirst = newestFirst }

  package var isEmpty: Bool { ranked.isEmpty }
  package var count: Int { ranked.count }

  /// The rank of the waiter with the highest priority.
  package var bestRank: Rank? { ranked.first?.rank }

  /// The waiter that arrived first.
  package var oldest: Ticket? { aged.first?.member }

  package func contains(_ ticket: Ticket) -> Bool { ranked.rank(of: ticket) != nil }

  /// Returns the next waiter without removing it.
  ///
  /// - Parameter isTurn: Whether to return the oldest waiter regardless of the number of counted turns.
  package func next(isTurn: Bool = false) -> Ticket? {
    isTurn || served % Self.turn == Self.turn - 1 ? aged.first?.member : ranked.first?.member
  }

  /// Adds a waiter.
  package mutating func insert(_ ticket: Ticket, _ level: LoadPriority.Level, isContinuing: Bool = false) {
    let place = Int64(clamping: ticket)
    ranked.set(ticket, Rank(level: level, isContinuing: isContinuing, place: newestFirst ? -place : place))
    aged.set(ticket, ticket)
  }

  /// Raises the level of a waiter. It never lowers the level.
  ///
  /// - Returns: Whether the level changed. It is `false` if the queue does not contain the waiter.
  @discardableResult
  package mutating func raise(_ ticket: Ticket, to level: LoadPriority.Level) -> Bool {
    guard var rank = ranked.rank(of: ticket), level > rank.level else { return false }
    rank.level = level
    ranked.set(ticket, rank)
    return true
  }

  /// Removes a waiter.
  ///
  /// - Returns: Whether the queue contained it.
  @discardableResult
  package mutating func remove(_ ticket: Ticket) -> Bool {
    aged.remove(ticket)
    return ranked.remove(ticket)
  }

  /// Counts a turn. A queue that never counts turns serves strictly by rank.
  package mutating func countServed() { served += 1 }
}
