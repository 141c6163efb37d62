import CacheCore
import CacheTesting
import Testing

@testable import CacheManager

/// An accounting in a class, because `#expect` treats values as constants.
private final class Book {
  private var accounting: MemoryAccounting

  init(limit: Int) { accounting = MemoryAccounting(limit: limit) }

  var held: MemoryAccounting.Holding { accounting.held }
  var inUse: Int { accounting.inUse }
  var peak: Int { accounting.peak }
  var waiting: Int { accounting.waiting }

  func served(_ claim: MemoryAccounting.Claim, _ ticket: UInt64, level: LoadPriority.Level) -> [UInt64] {
    accounting.claim(claim, ticket, level: level)
  }

  /// Whether this claim is granted, and no other one.
  func claim(_ claim: MemoryAccounting.Claim, _ ticket: UInt64, level: LoadPriority.Level) -> Bool {
    served(claim, ticket, level: level) == [ticket]
  }

  @discardableResult
  func raise(_ ticket: UInt64, to level: LoadPriority.Level) -> [UInt64] { accounting.raise(ticket, to: level) }
  func withdraw(_ ticket: UInt64) -> [UInt64] { accounting.withdraw(ticket) }
  func takeForStream(_ bytes: Int) -> Bool { accounting.takeForStream(bytes) }

  func giveBack(_ holding: MemoryAccounting.Holding, endOf reservation: Int? = nil) -> [UInt64] {
    accounting.giveBack(holding, endOf: reservation)
  }
}

@Suite("The accounting of a memory budget")
struct MemoryAccountingTests {
  /// An accounting of 400 bytes, of which bodies may use 300.
  private let accounting = Book(limit: 400)

  @Test("loads start while there is room, and then by priority, and hold nothing until their bodies arrive")
  func starts() {
    for ticket in UInt64(1)...100 { #expect(accounting.claim(.start(300), ticket, level: .normal)) }
    #expect(accounting.inUse == 0)
    #expect(accounting.claim(.body(200), 101, level: .normal))
    #expect(!accounting.claim(.start(150), 102, level: .normal))
    #expect(!accounting.claim(.start(150), 103, level: .low))
    accounting.raise(103, to: .high)

    #expect(accounting.giveBack(.init(bodies: 200)) == [103, 102])
  }

  @Test("streams take memory at once or not at all, and never so much that loads cannot have bodies")
  func streams() {
    #expect(accounting.takeForStream(100))
    #expect(!accounting.takeForStream(51))
    #expect(accounting.takeForStream(50))
    // No load has a body, so the first one starts whatever the streams hold.
    #expect(accounting.claim(.start(300), 1, level: .normal))
    #expect(accounting.claim(.body(100), 2, level: .normal))
    #expect(!accounting.claim(.body(100), 3, level: .normal))
    #expect(accounting.giveBack(.init(bodies: 50, streams: 50)) == [3])

    #expect(!accounting.claim(.body(100), 4, level: .normal))
    // Memory that becomes available is for the load that waits.
    #expect(!accounting.takeForStream(1))
    #expect(accounting.giveBack(.init(bodies: 200)) == [4])
    #expect(accounting.giveBack(.init(bodies: 200, streams: 100)).isEmpty)
    #expect(accounting.held == .init() && accounting.peak == 300)
  }

  @Test("a large claim is not overtaken, and a withdrawn claim admits the claims behind it")
  func headOfLine() {
    #expect(accounting.claim(.body(200), 1, level: .normal))
    #expect(!accounting.claim(.start(250), 2, level: .normal))
    #expect(!accounting.claim(.start(10), 3, level: .normal))

    #expect(accounting.withdraw(2) == [3])
    #expect(accounting.waiting == 0)
  }

  @Test("a body that has arrived is granted before loads that start")
  func bodies() {
    #expect(accounting.claim(.body(250), 4, level: .normal))
    #expect(!accounting.claim(.body(100), 5, level: .normal))
    #expect(!accounting.claim(.start(1), 6, level: .veryHigh))

    #expect(accounting.giveBack(.init(bodies: 250)) == [5, 6])
    #expect(accounting.peak == 250)
  }

  @Test("a body that is larger than the budget is granted if nothing else is held")
  func giant() {
    #expect(accounting.claim(.body(10), 1, level: .normal))
    #expect(!accounting.claim(.body(5_000), 2, level: .normal))
    #expect(!accounting.claim(.body(10), 3, level: .normal))
    #expect(accounting.giveBack(.init(bodies: 10)) == [2])
    #expect(accounting.giveBack(.init(bodies: 5_000)) == [3])
  }

  @Test("of the bodies that grow beyond the budget, one at a time continues to its end")
  func growth() {
    #expect(accounting.claim(.body(150), 1, level: .normal))
    #expect(accounting.claim(.body(150), 2, level: .normal))
    #expect(accounting.claim(.growth(50, reservation: 1), 3, level: .normal))
    #expect(!accounting.claim(.growth(50, reservation: 2), 4, level: .veryHigh))
    #expect(accounting.giveBack(.init(bodies: 1)).isEmpty)

    #expect(accounting.giveBack(.init(bodies: 199), endOf: 1) == [4])
    #expect(accounting.held.bodies == 200)
  }

  @Test("the body that grows beyond the budget continues before bodies that wait for its end")
  func secondGrowth() {
    #expect(accounting.claim(.body(150), 1, level: .normal))
    #expect(accounting.claim(.body(150), 2, level: .normal))
    #expect(accounting.claim(.growth(50, reservation: 1), 3, level: .normal))
    #expect(!accounting.claim(.growth(50, reservation: 2), 4, level: .veryHigh))
    #expect(accounting.claim(.growth(100, reservation: 1), 5, level: .low))

    #expect(accounting.giveBack(.init(bodies: 300), endOf: 1) == [4])
  }

  @Test("a body that is within the budget again grows like every other body")
  func backWithin() {
    #expect(accounting.claim(.body(150), 1, level: .normal))
    #expect(accounting.claim(.body(150), 2, level: .normal))
    #expect(accounting.claim(.growth(50, reservation: 1), 3, level: .normal))
    #expect(accounting.giveBack(.init(bodies: 150), endOf: 2).isEmpty)
    #expect(accounting.claim(.body(100), 4, level: .normal))

    #expect(accounting.claim(.growth(50, reservation: 4), 5, level: .normal))
    #expect(!accounting.claim(.growth(50, reservation: 1), 6, level: .veryHigh))
    #expect(accounting.giveBack(.init(bodies: 150), endOf: 4) == [6])
  }

  @Test("a claim that becomes urgent and fits is granted at once, with all claims that can then be granted")
  func turns() {
    #expect(accounting.claim(.body(200), 1, level: .normal))
    #expect(!accounting.claim(.body(250), 2, level: .normal))
    #expect(!accounting.claim(.body(50), 3, level: .low))
    #expect(accounting.raise(3, to: .high) == [3])
    #expect(accounting.giveBack(.init(bodies: 250)) == [2])
    #expect(accounting.giveBack(.init(bodies: 250)).isEmpty)

    // This queue has served three claims. Every eighth turn goes to the oldest one.
    for ticket in UInt64(4)...6 { #expect(accounting.claim(.body(10), ticket, level: .normal)) }
    #expect(!accounting.claim(.body(280), 7, level: .high))
    #expect(accounting.served(.body(5), 8, level: .veryHigh) == [8])
    #expect(accounting.giveBack(.init(bodies: 35)) == [7])
  }

  @Test("the first piece of work is always granted, and others wait while there is no room")
  func work() {
    #expect(accounting.claim(.body(300), 1, level: .normal))
    #expect(accounting.claim(.work(150), 2, level: .normal))
    #expect(!accounting.claim(.work(10), 3, level: .normal))
    #expect(!accounting.claim(.body(1), 4, level: .veryHigh))

    #expect(accounting.giveBack(.init(work: 150, workers: 1)) == [3])
    #expect(accounting.giveBack(.init(bodies: 300)) == [4])
  }

  /// A load, from its start to its end.
  private struct Load {
    var steps: [MemoryAccounting.Claim]
    var held = MemoryAccounting.Holding()
    var awaited: UInt64?
    var hasEnded = false
  }

  @Test("claims in any order all end, within the budget except for one body and one value", arguments: UInt64(1)...40)
  func anyOrder(seed: UInt64) throws {
    var random = SplitMix(state: seed)
    let limit = 1_000
    let accounting = Book(limit: limit)
    var loads = (0..<60).map { number -> Load in
      let size = Int.random(in: 0..<(number % 20 == 0 ? 3_000 : 300), using: &random)
      let growth = MemoryAccounting.Claim.growth(size / 2 + 1, reservation: number)
      let grown = number % 3 == 0 ? [growth, growth, growth] : []
      let work = number % 2 == 0 ? [MemoryAccounting.Claim.work(Int.random(in: 0...500, using: &random))] : []
      return Load(steps: [.start(50), .body(size)] + grown + work)
    }
    var (ticket, ended) = (UInt64(0), 0)
    let largest = 3_000 + 3 * 1_501 + 500
    while ended < loads.count {
      let waiting = loads.compactMap(\.awaited)
      if let late = waiting.randomElement(using: &random), let level = LoadPriority.Level.allCases.randomElement(using: &random) {
        arrive(accounting.raise(late, to: level), &loads)
      }
      let ready = loads.indices.filter { loads[$0].awaited == nil && !loads[$0].hasEnded }
      let number = try #require(ready.randomElement(using: &random), "everybody waits")
      guard let step = loads[number].steps.first else {
        let holding = loads[number].held
        loads[number].hasEnded = true
        ended += 1
        arrive(accounting.giveBack(holding, endOf: number), &loads)
        continue
      }
      if Int.random(in: 0..<20, using: &random) == 0 {
        loads[number].steps = []
        continue
      }
      ticket += 1
      loads[number].awaited = ticket
      let level = try #require(LoadPriority.Level.allCases.randomElement(using: &random))
      arrive(accounting.served(step, ticket, level: level), &loads)
      #expect(accounting.inUse <= limit + largest)
    }
    #expect(accounting.held == .init() && accounting.waiting == 0)
  }

  private func arrive(_ tickets: [UInt64], _ loads: inout [Load]) {
    for ticket in tickets {
      guard let number = loads.firstIndex(where: { $0.awaited == ticket }) else { continue }
      loads[number].awaited = nil
      switch loads[number].steps.removeFirst() {
      case .start: break
      case .body(let bytes): loads[number].held.bodies = bytes
      case .growth(let bytes, _): loads[number].held.bodies += bytes
      case .work(let bytes): (loads[number].held.work, loads[number].held.workers) = (bytes, 1)
      }
    }
  }
}
