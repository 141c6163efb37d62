import Testing

@testable import Simulation

@Suite("Simulated fleets: leases")
struct LeaseTests {
  /// Enough requests at the same time that each node receives some.
  private let workload = FleetFixture.workload(Array(repeating: 0, count: 200))

  @Test("nodes that need an object during the request of another node wait for its lease", arguments: [1, 2, 5])
  func wait(nodes: Int) {
    let report = FleetModel.run(FleetFixture.configuration(nodes: nodes, shared: 10_000), workload)
    #expect(report.originRequests == 1)
    #expect(report.leaseWaits == nodes - 1)
    #expect(report.sharedAfterWait.requests == nodes - 1)
    #expect(report.coalesced.requests == 200 - nodes)
    // The lease is granted after 2 ms and ends after 53 ms. A waiting node asks again after 5, 7.5, 11.25, 16.875 and 25.3125 ms,
    // each time with a call of 1 ms, and then reads the response in 1 ms.
    let expected = nodes > 1 ? 0.071_937_5 : 0
    #expect(abs(report.longestLeaseWait - expected) < 1e-9)
    #expect(abs(report.leaseWaitTime - Double(nodes - 1) * expected) < 1e-9)
    #expect(report.leaseCalls == 2 + 6 * (nodes - 1))
    #expect(report.sharedLookups == nodes + nodes - 1)
  }

  // The lease is granted after 2 ms and renewed each 2/3 s, each time for 2 s.
  @Test("another node takes the lease of a lost node after its expiry", arguments: [(0.02, 2.0), (1.0, 2 + 2.0 / 3)])
  func takeover(lostAt: Double, expiry: Double) throws {
    var configuration = FleetFixture.configuration(nodes: 2, shared: 10_000)
    (configuration.originLatency, configuration.longestWait) = (1.5, 10)
    let leader = try #require(FleetFixture.firstNode(configuration))
    configuration.losses = [.init(node: leader, from: lostAt, to: nil)]
    let report = FleetModel.run(configuration, workload)
    #expect(report.originRequests == 2)
    #expect(report.fetched.requests == 1)
    #expect(report.takeovers == 1)
    #expect(report.failed.requests == report.requestsOfNodes[leader])
    // A node asks again at most 101 ms after the expiry.
    #expect((expiry...expiry + 0.101).contains(report.longestLeaseWait))
  }

  @Test("a running request renews its lease, and waiting nodes send their own requests after the longest wait")
  func timeout() {
    var configuration = FleetFixture.configuration(nodes: 2, shared: 10_000)
    configuration.originLatency = 10
    let report = FleetModel.run(configuration, workload)
    #expect(report.originRequests == 2)
    #expect(report.waitTimeouts == 1)
    #expect(report.takeovers == 0)
    #expect((2.5...2.61).contains(report.longestLeaseWait))
  }

  @Test("if the shared tier refuses a response, the waiting nodes request it one after another")
  func refused() {
    let report = FleetModel.run(FleetFixture.configuration(nodes: 5, shared: 0), workload)
    #expect(report.originRequests == 5)
    #expect(report.bytesToShared == 0)
    #expect(report.longestLeaseWait > 4 * 0.05)
  }

  @Test("if the shared tier has evicted a stale response, the nodes revalidate it one after another")
  func evicted() {
    // Given all nodes have "a", and "b" replaces it in the shared tier
    let times = FleetFixture.spread().map { ($0, "a") }
    let workload = FleetFixture.workload(times + [(50, "b")] + Array(repeating: (100, "a"), count: 200))
    let report = FleetModel.run(FleetFixture.configuration(nodes: 5, shared: 1_000, lifetime: 60), workload)
    // Then
    #expect(report.originRequests == 2)
    #expect(report.revalidations == 5)
    #expect(report.leaseWaits == 4)
    #expect((4 * 0.05...1).contains(report.longestLeaseWait))
  }

  @Test("a node that is granted a lease uses a response that another node has stored, and ends the lease")
  func storedLongBefore() {
    // Given all nodes have a response that is stale after 100 s, and one node revalidates it
    let times = FleetFixture.spread() + [101] + FleetFixture.spread(from: 165) + FleetFixture.spread(from: 300)
    // When the others need it more than 60 s later, when the server has forgotten the end of the lease
    let report = FleetModel.run(
      FleetFixture.configuration(nodes: 5, shared: 10_000, lifetime: 100), FleetFixture.workload(times))
    // Then
    #expect(report.originRequests == 1)
    #expect(report.revalidations == 2)
    #expect(report.sharedHits.requests == 4 + 4 + 4)
    #expect(report.leaseWaits == 0)
  }
}
