/// Waiters by priority: the highest level first, and within one level in order of arrival, or the last one first.
///
/// Each step is O(log n). A waiter's level is stored here, so choosing the next waiter reads no ``LoadPriority``;
/// ``raise(_:to:)`` keeps it current.
package struct PriorityQueue {
  /// A waiter. Numbers are given in the order of arrival.
  package typealias Ticket = UInt64

  /// The position of a waiter: the smaller rank is served first.
  package struct Rank: Comparable {
    fileprivate var level: LoadPriority.Level
    /// Whether the waiter continues work that it has begun. Goes before the other waiters of its level.
    fileprivate let isContinuing: Bool
    fileprivate let place: Int64

    package static func < (a: Self, b: Self) -> Bool {
      if a.level != b.level { return a.level > b.level }
      if a.isContinuing != b.isContinuing { return a.isContinuing }
      return a.place < b.place
    }
  }

  /// The number of turns of which one is the oldest waiter's, where turns are counted.
  package static let turn = 8

  private let newestFirst: Bool
  private var ranked = IndexedHeap<Ticket, Rank>()
  private var aged = IndexedHeap<Ticket, Ticket>()
  private var served = 0

  /// - Parameter newestFirst: within one level the last waiter that came is served first.
  package init(newestFirst: Bool = false) { self.newestFirst = newestFirst }

  package var isEmpty: Bool { ranked.isEmpty }
  package var count: Int { ranked.count }

  /// The rank of the waiter with the highest priority.
  package var bestRank: Rank? { ranked.first?.rank }

  /// The waiter that came first.
  package var oldest: Ticket? { aged.first?.member }

  package func contains(_ ticket: Ticket) -> Bool { ranked.rank(of: ticket) != nil }

  /// The next waiter. It is not removed.
  ///
  /// - Parameter isTurn: it is the oldest waiter's turn, whatever the count of this queue says.
  package func next(isTurn: Bool = false) -> Ticket? {
    isTurn || served % Self.turn == Self.turn - 1 ? aged.first?.member : ranked.first?.member
  }

  /// Adds a waiter.
  package mutating func insert(_ ticket: Ticket, _ level: LoadPriority.Level, isContinuing: Bool = false) {
    let place = Int64(clamping: ticket)
    ranked.set(ticket, Rank(level: level, isContinuing: isContinuing, place: newestFirst ? -place : place))
    aged.set(ticket, ticket)
  }

  /// Raises the level of a waiter. Never lowers it.
  ///
  /// - Returns: whether its level has changed: false too when it does not wait.
  @discardableResult
  package mutating func raise(_ ticket: Ticket, to level: LoadPriority.Level) -> Bool {
    guard var rank = ranked.rank(of: ticket), level > rank.level else { return false }
    rank.level = level
    ranked.set(ticket, rank)
    return true
  }

  /// - Returns: whether it waited.
  @discardableResult
  package mutating func remove(_ ticket: Ticket) -> Bool {
    aged.remove(ticket)
    return ranked.remove(ticket)
  }

  /// Counts a turn. A queue whose turns are not counted serves strictly by rank.
  package mutating func countServed() { served += 1 }
}
