import CacheCore
import Testing

@Suite("The heap whose members can be moved")
struct IndexedHeapTests {
  @Test("gives back what a sorted list would, whatever is entered, moved and removed", arguments: 1...20 as ClosedRange<UInt64>)
  func model(_ seed: UInt64) {
    var random = SeededGenerator(state: seed)
    var heap = IndexedHeap<Int, Int>()
    var model: [Int: Int] = [:]
    for step in 0..<2_000 {
      let member = Int.random(in: 0..<200, using: &random)
      // Unique, so that there is one right answer.
      let rank = Int.random(in: 0..<1_000, using: &random) * 10_000 + step
      switch Int.random(in: 0..<3, using: &random) {
      case 0, 1:
        heap.set(member, rank)
        model[member] = rank
      default: #expect(heap.remove(member) == (model.removeValue(forKey: member) != nil))
      }
      #expect(heap.count == model.count)
      #expect(heap.first?.member == model.min { $0.value < $1.value }?.key)
    }
    var order: [Int] = []
    while let first = heap.first {
      order.append(first.member)
      heap.remove(first.member)
    }
    #expect(order == model.sorted { $0.value < $1.value }.map(\.key))
    #expect(heap.isEmpty)
  }
}
