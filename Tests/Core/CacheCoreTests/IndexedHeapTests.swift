import CacheCore
import Testing

@Suite("The indexed heap")
struct IndexedHeapTests {
  @Test(
    "the heap has the order of a sorted list after random insertions, moves and removals",
    arguments: 1...20 as ClosedRange<UInt64>)
  func model(_ seed: UInt64) {
    var random = SeededGenerator(state: seed)
    var heap = IndexedHeap<Int, Int>()
    var model: [Int: Int] = [:]
    for step in 0..<2_000 {
      let member = Int.random(in: 0..<200, using: &random)
      // Ranks are unique, so that there is only one correct order.
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

  /// A rank that counts comparisons.
  private struct CountedRank: Comparable {
    static let comparisons = Lock(0)
    let value: Int

    static func < (a: Self, b: Self) -> Bool {
      comparisons.withLock { $0 += 1 }
      return a.value < b.value
    }
  }

  @Test("each operation needs a logarithmic number of comparisons")
  func comparisons() {
    for exponent in [6, 10, 14] {
      let count = 1 << exponent
      var heap = IndexedHeap<Int, CountedRank>()
      var most = 0
      func counted(_ step: () -> Void) {
        let before = CountedRank.comparisons.withLock { $0 }
        step()
        most = max(most, CountedRank.comparisons.withLock { $0 } - before)
      }
      for member in 0..<count { counted { heap.set(member, CountedRank(value: (member * 7_919) % count)) } }
      for member in 0..<count where member % 3 == 0 { counted { heap.set(member, CountedRank(value: -member)) } }
      while let first = heap.first { counted { heap.remove(first.member) } }
      #expect(most <= 2 * exponent + 4)
    }
  }
}
