import CacheCore
import CacheTesting
import Testing

@testable import CacheTransport

@Suite("Order of transfers")
struct TransferQueueTests {
  typealias Level = LoadPriority.Level

  @Test("the next transfer has the highest priority, and then is the oldest or the newest")
  func order() {
    for (newestFirst, expected) in [(false, [4, 2, 5, 3, 6]), (true, [4, 5, 2, 6, 3])] {
      var queue = TransferQueue(TransferLimits(total: 1, newestFirst: newestFirst))
      #expect(queue.enter(1, host: "a", level: .normal) == .admitted)
      for (ticket, level) in [(2, Level.high), (3, .normal), (4, .veryHigh), (5, .high), (6, .normal)] {
        #expect(queue.enter(UInt64(ticket), host: "a", level: level) == .waiting)
      }
      var next: [Int] = []
      while let ticket = queue.leave(host: "a") { next.append(Int(ticket)) }
      #expect(next == expected, "\(newestFirst)")
      #expect(queue.active == 0)
      #expect(queue.waiting == 0)
      #expect(queue.knownHosts == 0)
    }
  }

  @Test("a host at its limit gets no slot and does not delay other hosts")
  func hosts() {
    var queue = TransferQueue(TransferLimits(total: 3, perHost: 2))
    #expect(queue.enter(1, host: "a", level: .normal) == .admitted)
    #expect(queue.enter(2, host: "a", level: .normal) == .admitted)
    #expect(queue.enter(3, host: "a", level: .veryHigh) == .waiting)
    #expect(queue.enter(4, host: "b", level: .veryLow) == .admitted)
    #expect(queue.enter(5, host: "b", level: .veryLow) == .waiting)
    #expect(queue.leave(host: "b") == 5)
    #expect(queue.leave(host: "b") == nil)
    #expect(queue.leave(host: "a") == 3)
  }

  @Test("a priority can rise while a transfer waits, but never fall")
  func raise() {
    var queue = TransferQueue(TransferLimits(total: 1))
    _ = queue.enter(1, host: "a", level: .normal)
    for ticket: UInt64 in 2...4 { _ = queue.enter(ticket, host: "a", level: .normal) }
    queue.raise(4, to: .high)
    queue.raise(4, to: .veryLow)
    queue.raise(99, to: .veryHigh)
    #expect(queue.leave(host: "a") == 4)
    #expect(queue.leave(host: "a") == 2)
  }

  @Test("a withdrawn ticket gets no slot")
  func withdraw() {
    var queue = TransferQueue(TransferLimits(total: 1))
    _ = queue.enter(1, host: "a", level: .normal)
    _ = queue.enter(2, host: "b", level: .high)
    _ = queue.enter(3, host: "c", level: .normal)
    let first = queue.withdraw(2)
    let again = queue.withdraw(2)
    #expect(first && !again)
    #expect(queue.waiting == 1)
    #expect(queue.leave(host: "a") == 3)
  }

  @Test("a transfer is refused when the maximum number of transfers wait")
  func bound() {
    var queue = TransferQueue(TransferLimits(total: 1, maximumWaiting: 2))
    #expect(queue.enter(1, host: "a", level: .normal) == .admitted)
    #expect(queue.enter(2, host: "a", level: .normal) == .waiting)
    #expect(queue.enter(3, host: "a", level: .normal) == .waiting)
    #expect(queue.enter(4, host: "a", level: .veryHigh) == .full)
    #expect(queue.waiting == 2)
    #expect(queue.leave(host: "a") == 2)
    #expect(queue.enter(5, host: "a", level: .normal) == .waiting)
  }

  @Test(
    "every eighth slot goes to the oldest transfer, even if urgent ones keep arriving",
    arguments: [false, true], [1, 2])
  func fairness(_ newestFirst: Bool, _ hosts: Int) {
    var queue = TransferQueue(TransferLimits(total: hosts, perHost: 1, newestFirst: newestFirst))
    for host in 0..<hosts { _ = queue.enter(UInt64(host + 1), host: "h\(host)", level: .normal) }
    // Given three low-priority transfers to the first host
    let patient: [UInt64] = [101, 102, 103]
    for ticket in patient { _ = queue.enter(ticket, host: "h0", level: .veryLow) }
    // When an urgent transfer arrives for each slot that is freed
    var served: [UInt64: Int] = [:]
    var ticket: UInt64 = 1_000
    for slot in 0..<200 {
      for host in 0..<hosts {
        ticket += 1
        _ = queue.enter(ticket, host: "h\(host)", level: .veryHigh)
        if let next = queue.leave(host: "h\(host)"), patient.contains(next) { served[next] = slot }
      }
    }
    // Then the three are served in order within the guaranteed number of slots
    #expect(served.count == 3)
    for (older, ticket) in patient.enumerated() {
      #expect((served[ticket] ?? .max) < TransferQueue.turn * (older + 1), "\(ticket)")
    }
  }

  @Test("the queue respects the limits, loses no ticket, and leaves no slot unused", arguments: 1...24 as ClosedRange<UInt64>)
  func property(_ seed: UInt64) {
    var random = Seeded(seed)
    let limits = TransferLimits(
      total: .random(in: 1...5, using: &random), perHost: .random(in: 1...3, using: &random),
      newestFirst: Bool.random(using: &random))
    var queue = TransferQueue(limits)
    var waiting: [UInt64: String] = [:]
    var running: [UInt64: String] = [:]
    for ticket: UInt64 in 1...3_000 {
      switch Int.random(in: 0..<10, using: &random) {
      case 0..<4:
        let host = "h\(Int.random(in: 0..<4, using: &random))"
        let level = Level.allCases.randomElement(using: &random) ?? .normal
        switch queue.enter(ticket, host: host, level: level) {
        case .admitted: running[ticket] = host
        case .waiting: waiting[ticket] = host
        case .full: Issue.record("a queue without a maximum refused a ticket")
        }
      case 4..<8:
        guard let ended = running.keys.sorted().randomElement(using: &random), let host = running.removeValue(forKey: ended)
        else { continue }
        if let next = queue.leave(host: host) {
          #expect(waiting[next] != nil)
          running[next] = waiting.removeValue(forKey: next)
        }
      case 8:
        if let any = waiting.keys.sorted().randomElement(using: &random) { queue.raise(any, to: .veryHigh) }
      default:
        if let any = waiting.keys.sorted().randomElement(using: &random) {
          queue.withdraw(any)
          waiting[any] = nil
        }
      }
      let perHost = Dictionary(grouping: running.values) { $0 }.mapValues(\.count)
      #expect(queue.active == running.count && queue.waiting == waiting.count)
      #expect(running.count <= limits.total && perHost.values.allSatisfy { $0 <= limits.perHost })
      let idle = running.count < limits.total && waiting.values.contains { perHost[$0, default: 0] < limits.perHost }
      #expect(!idle)
    }
  }

  @Test("the cost per transfer does not grow with the number of waiting transfers")
  func many() {
    func time(_ count: UInt64) -> Double {
      threadTime {
        var queue = TransferQueue(TransferLimits(total: 1))
        for ticket in 1...count { _ = queue.enter(ticket, host: "h\(ticket % 50)", level: .normal) }
        for ticket in stride(from: 2, through: count, by: 3) { queue.withdraw(ticket) }
        var host = "h1"
        while let next = queue.leave(host: host) { host = "h\(next % 50)" }
        #expect(queue.active == 0 && queue.waiting == 0 && queue.knownHosts == 0)
      }
    }
    // With four times as many tickets, a quadratic algorithm takes sixteen times as long.
    let (few, many) = (time(10_000), time(40_000))
    #expect(many < max(few, 0.05) * 8, "\(few) s, \(many) s")
  }
}
