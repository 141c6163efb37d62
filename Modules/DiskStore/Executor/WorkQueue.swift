/// A first-in, first-out queue with amortized O(1) at both ends. Removing the first element of an array would move all others.
struct WorkQueue<Element> {
  /// The elements, with `nil` for those already removed.
  private var elements: [Element?] = []
  /// The number of removed elements.
  private var taken = 0
  /// The minimum number of removed elements before the others are moved.
  private static var fewest: Int { 64 }

  mutating func append(_ element: Element) { elements.append(element) }

  /// Removes and returns the oldest element.
  mutating func popFirst() -> Element? {
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
