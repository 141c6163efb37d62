import CacheCore
import Testing

@Suite("The priority queue")
struct PriorityQueueTests {
  private struct Waiter {
    var ticket: PriorityQueue.Ticket
    var level: LoadPriority.Level
    var isContinuing: Bool

    static func isBefore(_ a: Self, _ b: Self) -> Bool {
      if a.level != b.level { return a.level > b.level }
      if a.isContinuing != b.isContinuing { return a.isContinuing }
      return a.ticket < b.ticket
    }
  }

  @Test(
    "the next waiter is that of a sorted list after random insertions, raises and removals",
    arguments: 1...10 as ClosedRange<UInt64>)
  func model(_ seed: UInt64) {
    var random = SeededGenerator(state: seed)
    var queue = PriorityQueue()
    var model: [Waiter] = []
    for ticket in 1...1_000 as ClosedRange<PriorityQueue.Ticket> {
      let level = LoadPriority.Level.allCases.randomElement(using: &random) ?? .normal
      let waiter = Waiter(ticket: ticket, level: level, isContinuing: Bool.random(using: &random))
      queue.insert(ticket, level, isContinuing: waiter.isContinuing)
      model.append(waiter)

      let other = PriorityQueue.Ticket.random(in: 1...ticket, using: &random)
      let raised = LoadPriority.Level.allCases.randomElement(using: &random) ?? .normal
      let place = model.firstIndex { $0.ticket == other && $0.level < raised }
      #expect(queue.raise(other, to: raised) == (place != nil))
      if let place { model[place].level = raised }

      if Int.random(in: 0..<2, using: &random) == 0 {
        let gone = PriorityQueue.Ticket.random(in: 1...ticket, using: &random)
        let count = model.count
        model.removeAll { $0.ticket == gone }
        #expect(queue.remove(gone) == (model.count < count))
        #expect(!queue.contains(gone))
      }
      #expect(queue.next() == model.min(by: Waiter.isBefore)?.ticket && queue.oldest == model.first?.ticket)
    }
    var order: [PriorityQueue.Ticket] = []
    while let ticket = queue.next() {
      order.append(ticket)
      queue.remove(ticket)
    }
    #expect(order == model.sorted(by: Waiter.isBefore).map(\.ticket) && queue.isEmpty)
  }

  @Test("with counted turns, every eighth turn is the oldest waiter's")
  func turns() {
    var queue = PriorityQueue()
    queue.insert(1, .veryLow)
    var order: [PriorityQueue.Ticket] = []
    for ticket in 2...9 as ClosedRange<PriorityQueue.Ticket> { queue.insert(ticket, .high) }
    while let ticket = queue.next() {
      order.append(ticket)
      queue.remove(ticket)
      queue.countServed()
    }
    #expect(order == [2, 3, 4, 5, 6, 7, 8, 1, 9])
  }
}
