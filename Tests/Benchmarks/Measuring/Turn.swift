import Synchronization

/// Whose turn it is: a number that goes up.
final class Turn: Sendable {
  private let count = Atomic(0)

  var value: Int { count.load(ordering: .relaxed) }

  func step() { count.add(1, ordering: .relaxed) }

  /// - Returns: the number after the step.
  @discardableResult
  func next() -> Int { count.add(1, ordering: .acquiringAndReleasing).newValue }

  func take<Element>(from elements: [Element]) -> Element? {
    let index = count.add(1, ordering: .relaxed).oldValue
    return index < elements.count ? elements[index] : nil
  }
}
