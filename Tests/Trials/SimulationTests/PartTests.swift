import CacheTesting
import Testing

@testable import Simulation

@Suite("Simulated fleets: parts")
struct PartTests {
  @Test("events leave the queue in the order of their times, and then of their arrival")
  func events() {
    var queue = EventQueue<Int>()
    var generator = SplitMix(state: 1)
    let times = (0..<500).map { _ in Double(generator.next() % 50) }
    for (number, time) in times.enumerated() { queue.add(number, at: time) }
    var found: [Int] = []
    while let time = queue.nextTime, let first = queue.removeFirst() {
      #expect(first.time == time && times[first.event] == time)
      found.append(first.event)
    }
    #expect(found == times.indices.sorted { (times[$0], $0) < (times[$1], $1) })
  }

  @Test("a ring divides objects evenly, and a lost node moves only its own objects")
  func ring() {
    let ring = HashRing(nodes: 10, pointsPerNode: 128)
    var counts = Array(repeating: 0, count: 10)
    for object in 0..<10_000 {
      let hash = SplitMix.mix(UInt64(object), 7)
      let node = ring.node(for: hash) { _ in false }
      let without3 = ring.node(for: hash) { $0 == 3 }
      #expect(without3 != 3)
      if node != 3 { #expect(without3 == node) }
      if let node { counts[node] += 1 }
    }
    #expect(counts.allSatisfy { (700...1_300).contains($0) })
    #expect(ring.node(for: 1) { _ in true } == nil)
  }

  @Test("a generated trace depends only on its parameters and its seed")
  func generated() {
    var zipf = Workload.Zipf()
    (zipf.objects, zipf.requests) = (100, 20_000)
    let workload = Workload(zipf, seed: 1)
    #expect(workload.requests == Workload(zipf, seed: 1).requests)
    #expect(workload.sizes == Workload(zipf, seed: 1).sizes)
    #expect(workload.requests != Workload(zipf, seed: 2).requests)
    #expect(workload.sizes.allSatisfy { (2_000...80_000).contains($0) })
    // 20,000 requests at 5,000 per second.
    #expect((3.9...4.1).contains(workload.duration))
    #expect(zip(workload.requests, workload.requests.dropFirst()).allSatisfy { $0.time <= $1.time })
    // The first rank has a share of 1 / (1 + 2^-0.9 + … + 100^-0.9) = 15.2 %.
    #expect((2_850...3_250).contains(workload.requests.count { $0.object == 0 }))
  }

  private func read(_ text: String) throws(Trace.LineError) -> Workload {
    let result = Array(text.utf8).withUnsafeBytes { bytes in
      Result { () throws(Trace.LineError) in try Workload(bytes) }
    }
    return try result.get()
  }

  @Test("a recorded trace starts at its first request, and an object keeps its first size")
  func recorded() throws {
    let workload = try read("100,a,10\n100.5,b,20\n103,a,30\n")
    #expect(workload.requests == [.init(time: 0, object: 0), .init(time: 0.5, object: 1), .init(time: 3, object: 0)])
    #expect(workload.sizes == [10, 20])
    #expect(workload.index(of: "b") == 1 && workload.index(of: "c") == nil)
    #expect(workload.duration == 3)
  }

  @Test(
    "an invalid line of a recorded trace is refused with its number and the reason",
    arguments: [
      ("1,a,1\n0.5,a,1\n", "line 2: the time 0.5 is before the previous one, 1.0"),
      ("1,a,1\n2,a,1\nnan,a,1\n", "line 3: the time 'nan' is not finite"), ("inf,a,1\n", "line 1: the time 'inf' is not finite"),
      ("1,a\n", "line 1: 2 fields, not time,object,size"),
    ])
  func invalid(text: String, message: String) {
    let error = #expect(throws: Trace.LineError.self) { try read(text) }
    #expect(error?.description == message)
  }

  @Test("a table has a line for each number of nodes")
  func table() {
    var report = FleetReport()
    report.memoryHits = .init(requests: 3, bytes: 3_000)
    report.fetched = .init(requests: 1, bytes: 1_234_567)
    report.originRequests = 1_000
    report.requestsOfNodes = [3, 1]
    var waited = report
    (waited.leaseWaits, waited.leaseWaitTime, waited.longestLeaseWait) = (2, 0.05, 2.5)
    let lines = Table.text([(1, report), (100, waited)]).split(separator: "\n").map { line in
      line.split(separator: " ").joined(separator: " ")
    }
    #expect(lines.count == 3)
    #expect(lines[0].hasPrefix("nodes origin requests revalidations hits memory hits shared"))
    #expect(lines[1] == "1 1,000 0 75.00 % 0.00 % 1.23 MB 0 B 0 B 0 0 - - 1.50 × 0")
    #expect(lines[2] == "100 1,000 0 75.00 % 0.00 % 1.23 MB 0 B 0 B 0 2 25.0 ms 2.50 s 1.50 × 0")
  }
}
