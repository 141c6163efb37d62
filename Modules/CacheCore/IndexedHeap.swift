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
