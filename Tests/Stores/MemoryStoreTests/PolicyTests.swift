import CacheCore
import CacheTesting
import Testing

@Suite("Eviction policies")
struct PolicyTests {
  @Test(
    "a policy evicts each resident entry exactly once and then none", arguments: Policy.allCases,
    [1, 2, 3] as [UInt64])
  func evictsEachOnce(_ policy: Policy, _ seed: UInt64) {
    // Given
    var order = policy.made
    order.bound(cost: 1_000, count: 100)
    var generator = SplitMix(state: seed)
    var residents: Set<Int> = []
    var evictions = 0

    // When
    for step in 0..<20_000 {
      let slot = Int.random(in: 0..<150, using: &generator)
      let cost = Int.random(in: 0..<30, using: &generator)
      switch Int.random(in: 0..<10, using: &generator) {
      case 0 where residents.contains(slot):
        order.remove(slot)
        residents.remove(slot)
      case 1 where residents.contains(slot): order.replace(slot, fingerprint: step % 300, cost: cost)
      case 2...5 where residents.contains(slot): order.access(slot)
      case 6...9 where residents.insert(slot).inserted: order.insert(slot, fingerprint: step % 300, cost: cost)
      case _ where residents.count > 100:
        // Then
        guard let victim = order.evict(toFit: cost), residents.remove(victim) != nil else {
          Issue.record("step \(step): the policy evicted no resident entry")
          return
        }
        evictions += 1
      default: break
      }
    }
    #expect(evictions > 500)
    while let victim = order.evict(toFit: 0) { #expect(residents.remove(victim) != nil) }
    #expect(residents.isEmpty)
    #expect(order.evict(toFit: 0) == nil)
  }

  @Test("S3-FIFO retains used entries during a scan")
  func scan() {
    // Given: ten entries that were each used twice.
    var order = S3FIFO()
    order.bound(cost: .max, count: 20)
    for slot in 0..<10 { order.insert(slot, fingerprint: slot, cost: 1) }
    for slot in 0..<10 { for _ in 0..<2 { order.access(slot) } }
    for slot in 10..<20 { order.insert(slot, fingerprint: slot, cost: 1) }

    // When: two hundred entries are inserted that are never used again.
    var free = 20
    for fingerprint in 20..<220 {
      guard let victim = order.evict(toFit: 1) else { break }
      #expect(victim >= 10)
      order.insert(free, fingerprint: fingerprint, cost: 1)
      free = victim
    }

    // Then: the used entries leave last.
    var last: [Int] = []
    while let victim = order.evict(toFit: 0) { last.append(victim) }
    #expect(Set(last.suffix(10)) == Set(0..<10))
  }

  @Test("S3-FIFO retains an entry that returns soon after its eviction, but not one that was removed")
  func ghosts() {
    /// Returns the number of evictions until the first entry leaves.
    func evictions(_ prepare: (inout S3FIFO) -> Void) -> Int {
      var order = S3FIFO()
      order.bound(cost: .max, count: 50)
      for slot in 0..<50 { order.insert(slot, fingerprint: slot, cost: 1) }
      #expect(order.evict(toFit: 1) == 0)
      prepare(&order)
      var number = 1
      while let victim = order.evict(toFit: 1), victim != 0 { number += 1 }
      return number
    }

    // The first entry was evicted and returns. Newer entries now leave before it.
    #expect(evictions { $0.insert(0, fingerprint: 0, cost: 1) } > 25)
    // It is removed and inserted as an unknown one.
    let unknown = evictions { order in
      order.insert(0, fingerprint: 0, cost: 1)
      order.remove(0)
      order.insert(0, fingerprint: 0, cost: 1)
    }
    #expect(unknown < 25)
    // The store has spared it, which is no use of it.
    #expect(evictions { $0.spare(0, fingerprint: 0, cost: 1) } < 25)
  }

  @Test("LFU evicts the least frequently used entry, and later one that is no longer popular")
  func aging() {
    var order = LeastFrequentlyUsed()
    order.insert(0, fingerprint: 0, cost: 1)
    for _ in 0..<63 { order.access(0) }
    order.insert(1, fingerprint: 1, cost: 1)
    order.insert(2, fingerprint: 2, cost: 1)
    order.access(1)
    #expect(order.evict(toFit: 1) == 2)

    // Other entries are used so often that its count has been halved to zero.
    order.insert(2, fingerprint: 2, cost: 1)
    for _ in 0..<200 { for slot in 1...2 { order.access(slot) } }
    #expect(order.evict(toFit: 1) == 0)
  }

  @Test("LFU evicts the least recently used entry among equals")
  func equals() {
    var order = LeastFrequentlyUsed()
    for slot in 0..<3 { order.insert(slot, fingerprint: slot, cost: 1) }
    for slot in [2, 0, 1] { order.access(slot) }
    #expect((0..<3).map { _ in order.evict(toFit: 1) } == [2, 0, 1])
  }
}
