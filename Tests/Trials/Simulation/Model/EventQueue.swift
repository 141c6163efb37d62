/// A queue of events by their times. Events of the same time keep the order in which they were added.
///
/// Each operation is O(log *n*).
struct EventQueue<Event> {
  private struct Item {
    let time: Double
    let number: Int
    let event: Event

    func precedes(_ other: Item) -> Bool { (time, number) < (other.time, other.number) }
  }

  private var heap: [Item] = []
  private var added = 0

  /// The time of the first event.
  var nextTime: Double? { heap.first?.time }

  mutating func add(_ event: Event, at time: Double) {
    heap.append(Item(time: time, number: added, event: event))
    added += 1
    var child = heap.count - 1
    while child > 0 {
      let parent = (child - 1) / 2
      guard heap[child].precedes(heap[parent]) else { return }
      heap.swapAt(child, parent)
      child = parent
    }
  }

  /// Removes and returns the first event.
  mutating func removeFirst() -> (time: Double, event: Event)? {
    guard let first = heap.first, let last = heap.popLast() else { return nil }
    if !heap.isEmpty {
      heap[0] = last
      var parent = 0
      while true {
        var least = parent
        for child in [2 * parent + 1, 2 * parent + 2] where child < heap.count && heap[child].precedes(heap[least]) {
          least = child
        }
        guard least != parent else { break }
        heap.swapAt(parent, least)
        parent = least
      }
    }
    return (first.time, first.event)
  }
}
