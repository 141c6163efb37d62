import Testing

@testable import DiskStore

@Suite("Disk store: the work queue")
struct WorkQueueTests {
  @Test(
    "the queue is first in, first out, whatever its length",
    arguments: [1, 2, 63, 64, 65, 1_000])
  func order(count: Int) {
    var queue = WorkQueue<Int>()
    var (added, taken) = (0, 0)
    for round in 0..<40 {
      for _ in 0..<count {
        queue.append(added)
        added += 1
      }
      for _ in 0..<min(added - taken, count / 2 + round % 3 * count / 2) {
        #expect(queue.popFirst() == taken)
        taken += 1
      }
    }
    while let number = queue.popFirst() {
      #expect(number == taken)
      taken += 1
    }
    #expect(taken == added)
  }

  @Test("a removed element is released")
  func release() {
    final class Element {}
    var queue = WorkQueue<Element>()
    weak var first: Element?
    do {
      let element = Element()
      first = element
      queue.append(element)
      queue.append(Element())
    }
    #expect(first != nil)
    _ = queue.popFirst()
    #expect(first == nil)
    withExtendedLifetime(queue) {}
  }
}
