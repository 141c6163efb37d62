import Synchronization

/// An atomic counter, which also distributes the elements of an array among tasks.
final class AtomicCounter: Sendable {
  private let count = Atomic(0)

  var value: Int { count.load(ordering: .relaxed) }

  func step() { count.add(1, ordering: .relaxed) }

  /// Increments the counter.
  ///
  /// - Returns: The new value.
  @discardableResult
  func next() -> Int { count.add(1, ordering: .acquiringAndReleasing).newValue }

  /// Returns the next element, or `nil` after the last one.
  func take<Element>(from elements: [Element]) -> Element? {
    let index = count.add(1, ordering: .relaxed).oldValue
    return index < elements.count ? elements[index] : nil
  }
}
