/// What waits, first in, first out: O(1) at both ends, amortised, where an array's first element is taken at the price of moving
/// all the others.
struct WorkQueue<Element> {
  /// Nil: it has been taken, and is let go of.
  private var elements: [Element?] = []
  /// How many of them have been taken.
  private var taken = 0
  /// Fewer that were taken are not worth moving the others for.
  private static var fewest: Int { 64 }

  mutating func append(_ element: Element) { elements.append(element) }

  /// The oldest one.
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
