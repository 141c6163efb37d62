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

/// A binary heap whose members can be moved and removed. The smallest rank comes first. Each operation is O(log n).
///
/// Inlinable for the same reason as ``Lock``: other modules would call it unspecialized otherwise.
@usableFromInline
package struct IndexedHeap<Member: Hashable, Rank: Comparable> {
  @usableFromInline var nodes: [(member: Member, rank: Rank)] = []
  @usableFromInline var places: [Member: Int] = [:]

  @inlinable
  package init() {}

  @inlinable package var isEmpty: Bool { nodes.isEmpty }
  @inlinable package var count: Int { nodes.count }

  /// The member with the smallest rank.
  @inlinable package var first: (member: Member, rank: Rank)? { nodes.first }

  /// Returns the rank of a member, or `nil` if the heap does not contain it.
  @inlinable
  package func rank(of member: Member) -> Rank? { places[member].map { nodes[$0].rank } }

  /// Inserts a member, or moves it.
  @inlinable
  package mutating func set(_ member: Member, _ rank: Rank) {
    if let place = places[member] {
      nodes[place].rank = rank
      settle(place)
    } else {
      nodes.append((member, rank))
      places[member] = nodes.count - 1
      settle(nodes.count - 1)
    }
  }

  /// Removes a member.
  ///
  /// - Returns: Whether the heap contained it.
  @discardableResult
  @inlinable
  package mutating func remove(_ member: Member) -> Bool {
    guard let place = places.removeValue(forKey: member) else { return false }
    let last = nodes.removeLast()
    if place < nodes.count {
      nodes[place] = last
      places[last.member] = place
      settle(place)
    }
    return true
  }

  @inlinable
  mutating func settle(_ start: Int) {
    var place = start
    while place > 0, nodes[place].rank < nodes[(place - 1) / 2].rank {
      swap(place, (place - 1) / 2)
      place = (place - 1) / 2
    }
    while true {
      var smallest = place
      for child in [2 * place + 1, 2 * place + 2]
      where child < nodes.count && nodes[child].rank < nodes[smallest].rank {
        smallest = child
      }
      guard smallest != place else { return }
      swap(place, smallest)
      place = smallest
    }
  }

  @inlinable
  mutating func swap(_ a: Int, _ b: Int) {
    nodes.swapAt(a, b)
    places[nodes[a].member] = a
    places[nodes[b].member] = b
  }
}

/// A first-in, first-out queue with amortized O(1) at both ends. Removing the first element of an array would move all others.
@usableFromInline
package struct WorkQueue<Element> {
  /// The elements, with `nil` for those already removed.
  @usableFromInline var elements: [Element?] = []
  /// The number of removed elements.
  @usableFromInline var taken = 0

  @inlinable
  package init() {}
  /// The minimum number of removed elements before the others are moved.
  @inlinable static var fewest: Int { 64 }

  @inlinable
  package mutating func append(_ element: Element) { elements.append(element) }

  /// Removes and returns the oldest element.
  @inlinable
  package mutating func popFirst() -> Element? {
    guard taken < elements.count else { return nil }
    let element = elements[taken]
    elements[taken] = nil
    taken += 1
    if taken == elements.count {
      elements.removeAll(keepingCapacity: taken <= Self.fewest)
      taken = 0
    } else if taken >= Self.fewest, taken * 2 >= elements.count {
      elements.removeFirst(taken)
      taken = 0
    }
    return element
  }
}

extension WorkQueue: Sendable where Element: Sendable {}
