import CacheCore
import CacheTesting
import Testing

@testable import CacheManager

/// A ledger by reference: `#expect` takes what it looks at for constant.
private final class Book {
  private var ledger: MemoryAccounting

  init(limit: Int) { ledger = MemoryAccounting(limit: limit) }

  var held: MemoryAccounting.Holding { ledger.held }
  var inUse: Int { ledger.inUse }
  var peak: Int { ledger.peak }
  var waiting: Int { ledger.waiting }
  var expectation: Int { ledger.expectation }

  func served(_ claim: MemoryAccounting.Claim, _ ticket: UInt64, level: LoadPriority.Level) -> [UInt64] {
    ledger.claim(claim, ticket, level: level)
  }

  /// Whether it is granted, and to nobody else.
  func claim(_ claim: MemoryAccounting.Claim, _ ticket: UInt64, level: LoadPriority.Level) -> Bool {
    served(claim, ticket, level: level) == [ticket]
  }

  @discardableResult
  func raise(_ ticket: UInt64, to level: LoadPriority.Level) -> [UInt64] { ledger.raise(ticket, to: level) }
  func withdraw(_ ticket: UInt64) -> [UInt64] { ledger.withdraw(ticket) }
  func learn(_ bytes: Int) { ledger.learn(bytes) }

  func giveBack(_ holding: MemoryAccounting.Holding, endOf share: Int? = nil) -> [UInt64] {
    ledger.giveBack(holding, endOf: share)
  }
}

@Suite("How a memory budget is spent")
struct MemoryLedgerTests {
  /// 400, of which bodies may have 300.
  private let ledger = Book(limit: 400)

  @Test("places are given out as long as there is room, then by urgency")
  func places() {
    #expect(ledger.claim(.place(200), 1, level: .normal))
    #expect(!ledger.claim(.place(150), 2, level: .low))
    #expect(!ledger.claim(.place(150), 3, level: .normal))
    #expect(!ledger.claim(.place(150), 4, level: .low))
    ledger.raise(4, to: .high)

    #expect(ledger.giveBack(.init(places: 200)) == [4, 3])
    #expect(ledger.giveBack(.init(places: 150)) == [2])
  }

  @Test("who needs much is waited for, and who leaves lets those behind it in")
  func headOfLine() {
    #expect(ledger.claim(.place(200), 1, level: .normal))
    #expect(!ledger.claim(.place(250), 2, level: .normal))
    #expect(!ledger.claim(.place(10), 3, level: .normal))

    #expect(ledger.withdraw(2) == [3])
    #expect(ledger.waiting == 0)
  }

  @Test("a body is measured against bodies, not against places, and goes before those who want a place")
  func bodies() {
    for ticket in 1...3 { #expect(ledger.claim(.place(100), UInt64(ticket), level: .normal)) }
    #expect(ledger.claim(.body(250), 4, level: .normal))
    #expect(!ledger.claim(.body(100), 5, level: .normal))
    #expect(!ledger.claim(.place(1), 6, level: .veryHigh))
    #expect(ledger.giveBack(.init(places: 300)).isEmpty)

    #expect(ledger.giveBack(.init(bodies: 250)) == [5, 6])
    #expect(ledger.peak == 250)
  }

  @Test("a body that is larger than the budget comes alone")
  func giant() {
    #expect(ledger.claim(.body(10), 1, level: .normal))
    #expect(!ledger.claim(.body(5_000), 2, level: .normal))
    #expect(!ledger.claim(.body(10), 3, level: .normal))
    #expect(ledger.giveBack(.init(bodies: 10)) == [2])
    #expect(ledger.giveBack(.init(bodies: 5_000)) == [3])
  }

  @Test("of those that grow beyond what there is, one at a time goes on, to its end")
  func growth() {
    #expect(ledger.claim(.body(150), 1, level: .normal))
    #expect(ledger.claim(.body(150), 2, level: .normal))
    #expect(ledger.claim(.growth(50, share: 1), 3, level: .normal))
    #expect(!ledger.claim(.growth(50, share: 2), 4, level: .veryHigh))
    #expect(ledger.giveBack(.init(bodies: 1)).isEmpty)

    #expect(ledger.giveBack(.init(bodies: 199), endOf: 1) == [4])
    #expect(ledger.held.bodies == 200)
  }

  @Test("the one that grows beyond what there is goes on however often it grows, past those who wait for its end")
  func secondGrowth() {
    #expect(ledger.claim(.body(150), 1, level: .normal))
    #expect(ledger.claim(.body(150), 2, level: .normal))
    #expect(ledger.claim(.growth(50, share: 1), 3, level: .normal))
    #expect(!ledger.claim(.growth(50, share: 2), 4, level: .veryHigh))
    #expect(ledger.claim(.growth(100, share: 1), 5, level: .low))

    #expect(ledger.giveBack(.init(bodies: 300), endOf: 1) == [4])
  }

  @Test("who grew beyond what there is, and is back within it, grows like everybody")
  func backWithin() {
    #expect(ledger.claim(.body(150), 1, level: .normal))
    #expect(ledger.claim(.body(150), 2, level: .normal))
    #expect(ledger.claim(.growth(50, share: 1), 3, level: .normal))
    #expect(ledger.giveBack(.init(bodies: 150), endOf: 2).isEmpty)
    #expect(ledger.claim(.body(100), 4, level: .normal))

    #expect(ledger.claim(.growth(50, share: 4), 5, level: .normal))
    #expect(!ledger.claim(.growth(50, share: 1), 6, level: .veryHigh))
    #expect(ledger.giveBack(.init(bodies: 150), endOf: 4) == [6])
  }

  @Test("who becomes urgent and fits is served at once, and so is everybody whose turn comes by somebody else's claim")
  func turns() {
    #expect(ledger.claim(.place(200), 1, level: .normal))
    #expect(!ledger.claim(.place(250), 2, level: .normal))
    #expect(!ledger.claim(.place(50), 3, level: .low))
    #expect(ledger.raise(3, to: .high) == [3])
    #expect(ledger.giveBack(.init(places: 250)) == [2])
    #expect(ledger.giveBack(.init(places: 250)).isEmpty)

    // Three were served in this line; the eighth turn is the longest waiting one's.
    for ticket in UInt64(4)...6 { #expect(ledger.claim(.place(10), ticket, level: .normal)) }
    #expect(!ledger.claim(.place(280), 7, level: .high))
    #expect(ledger.served(.place(5), 8, level: .veryHigh) == [8])
    #expect(ledger.giveBack(.init(places: 35)) == [7])
  }

  @Test("one who computes is never made to wait, others while there is no room")
  func work() {
    #expect(ledger.claim(.body(300), 1, level: .normal))
    #expect(ledger.claim(.work(150), 2, level: .normal))
    #expect(!ledger.claim(.work(10), 3, level: .normal))
    #expect(!ledger.claim(.body(1), 4, level: .veryHigh))

    #expect(ledger.giveBack(.init(work: 150, workers: 1)) == [3])
    #expect(ledger.giveBack(.init(bodies: 300)) == [4])
  }

  @Test("what is expected of a body follows those that came, within bounds")
  func expectation() {
    let ledger = Book(limit: 400 << 20)
    #expect(ledger.expectation == 4 << 20)
    for _ in 0..<100 { ledger.learn(8 << 20) }
    #expect((7 << 20...8 << 20).contains(ledger.expectation))
    for _ in 0..<100 { ledger.learn(0) }
    #expect((64 << 10...65 << 10).contains(ledger.expectation))
    for _ in 0..<200 { ledger.learn(.max) }
    #expect((290 << 20...300 << 20).contains(ledger.expectation))
  }

  /// A load, from its place to its end.
  private struct Load {
    var steps: [MemoryAccounting.Claim]
    var held = MemoryAccounting.Holding()
    var awaited: UInt64?
  }

  @Test("whatever comes in whatever order: everybody ends, within the budget but for one", arguments: UInt64(1)...40)
  func anyOrder(seed: UInt64) throws {
    var random = SplitMix(state: seed)
    let limit = 1_000
    let ledger = Book(limit: limit)
    var loads = (0..<60).map { number -> Load in
      let size = Int.random(in: 0..<(number % 20 == 0 ? 3_000 : 300), using: &random)
      let growth = MemoryAccounting.Claim.growth(size / 2 + 1, share: number)
      let grown = number % 3 == 0 ? [growth, growth, growth] : []
      let work = number % 2 == 0 ? [MemoryAccounting.Claim.work(Int.random(in: 0...500, using: &random))] : []
      return Load(steps: [.place(50), .body(size)] + grown + work)
    }
    var (ticket, ended) = (UInt64(0), 0)
    let largest = 3_000 + 3 * 1_501 + 500
    while ended < loads.count {
      let waiting = loads.compactMap(\.awaited)
      if let late = waiting.randomElement(using: &random), let level = LoadPriority.Level.allCases.randomElement(using: &random) {
        arrive(ledger.raise(late, to: level), &loads, ledger)
      }
      let ready = loads.indices.filter { loads[$0].awaited == nil && loads[$0].held.places >= 0 }
      let number = try #require(ready.randomElement(using: &random), "everybody waits")
      guard let step = loads[number].steps.first else {
        let holding = loads[number].held
        loads[number].held.places = -1
        ended += 1
        arrive(ledger.giveBack(holding, endOf: number), &loads, ledger)
        continue
      }
      if Int.random(in: 0..<20, using: &random) == 0 {
        loads[number].steps = []
        continue
      }
      ticket += 1
      loads[number].awaited = ticket
      let level = try #require(LoadPriority.Level.allCases.randomElement(using: &random))
      arrive(ledger.served(step, ticket, level: level), &loads, ledger)
      #expect(ledger.inUse <= limit + largest)
    }
    #expect(ledger.held == .init() && ledger.waiting == 0)
  }

  private func arrive(_ tickets: [UInt64], _ loads: inout [Load], _ ledger: Book) {
    var back: [MemoryAccounting.Holding] = []
    for ticket in tickets {
      guard let number = loads.firstIndex(where: { $0.awaited == ticket }) else { continue }
      loads[number].awaited = nil
      switch loads[number].steps.removeFirst() {
      case .place(let bytes): loads[number].held.places = bytes
      case .body(let bytes):
        back.append(.init(places: loads[number].held.places))
        loads[number].held.places = 0
        loads[number].held.bodies = bytes
      case .growth(let bytes, _): loads[number].held.bodies += bytes
      case .work(let bytes): (loads[number].held.work, loads[number].held.workers) = (bytes, 1)
      }
    }
    for holding in back { arrive(ledger.giveBack(holding), &loads, ledger) }
  }
}
