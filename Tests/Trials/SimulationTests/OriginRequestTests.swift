import Testing

@testable import Simulation

@Suite("Simulated fleets: requests to the origin")
struct OriginRequestTests {
  private let workload = FleetFixture.workload(FleetFixture.spread())

  @Test("without a shared tier, each node requests an object from the origin", arguments: [1, 2, 7])
  func withoutSharedTier(nodes: Int) {
    let report = FleetModel.run(FleetFixture.configuration(nodes: nodes), workload)
    #expect(report.originRequests == nodes)
    #expect(report.bytesFromOrigin == nodes * 1_000)
    #expect(report.memoryHits.requests == 200 - nodes)
    #expect(report.sharedCalls == 0)
  }

  @Test("with a shared tier, one node requests an object, and the others read it there", arguments: [1, 2, 7])
  func withSharedTier(nodes: Int) {
    let report = FleetModel.run(FleetFixture.configuration(nodes: nodes, shared: 10_000), workload)
    #expect(report.originRequests == 1)
    #expect(report.sharedHits.requests == nodes - 1)
    #expect(report.bytesFromShared == (nodes - 1) * 1_000)
    #expect(report.bytesToShared == 1_000)
    #expect(report.leaseCalls == 2)
    #expect(report.sharedLookups == nodes)
  }

  @Test("without leases, nodes still find what other nodes have stored")
  func withoutLeases() {
    var configuration = FleetFixture.configuration(nodes: 7, shared: 10_000)
    configuration.leaseDuration = nil
    let report = FleetModel.run(configuration, workload)
    #expect(report.originRequests == 1)
    #expect(report.leaseCalls == 0)
    // At once, each node sends its own request.
    #expect(FleetModel.run(configuration, FleetFixture.workload(Array(repeating: 0, count: 200))).originRequests == 7)
  }

  @Test("with consistent hashing, one node requests an object", arguments: [1, 2, 7])
  func hashing(nodes: Int) {
    let report = FleetModel.run(FleetFixture.configuration(nodes: nodes, .hash), workload)
    #expect(report.originRequests == 1)
    #expect(report.requestsOfNodes.sorted() == Array(repeating: 0, count: nodes - 1) + [200])
    #expect(report.imbalance == Double(nodes))
  }

  @Test("requests that arrive at a node during a load join it")
  func coalescing() {
    let report = FleetModel.run(FleetFixture.configuration(), FleetFixture.workload([0, 0.01, 0.049, 0.051]))
    #expect(report.originRequests == 1)
    #expect(report.coalesced.requests == 2)
    #expect(report.memoryHits.requests == 1)
  }

  @Test("a stale response is revalidated by one conditional request")
  func freshness() {
    // The response arrives 50 ms after the first request, and is fresh for 60 s.
    let workload = FleetFixture.workload([0, 60, 60.1, 70, 121])
    let report = FleetModel.run(FleetFixture.configuration(lifetime: 60), workload)
    #expect(report.originRequests == 1)
    #expect(report.revalidations == 2)
    #expect(report.revalidated.requests == 2)
    #expect(report.bytesFromOrigin == 1_000)
    #expect(report.memoryHits.requests == 2)
  }

  @Test("a response of the shared tier keeps its age, and one node revalidates it for all")
  func sharedFreshness() {
    let workload = FleetFixture.workload(FleetFixture.spread() + FleetFixture.spread(from: 100))
    let alone = FleetModel.run(FleetFixture.configuration(nodes: 5, lifetime: 60), workload)
    #expect(alone.originRequests == 5 && alone.revalidations == 5)
    let sharing = FleetModel.run(FleetFixture.configuration(nodes: 5, shared: 10_000, lifetime: 60), workload)
    #expect(sharing.originRequests == 1 && sharing.revalidations == 1)
    #expect(sharing.sharedHits.requests == 8)
    #expect(sharing.sharedUpdates == 1)
  }

  @Test("a response that does not fit into a node's tier is requested each time")
  func tooLarge() {
    var configuration = FleetFixture.configuration()
    configuration.memory = 500
    #expect(FleetModel.run(configuration, FleetFixture.workload([0, 1, 2])).originRequests == 3)
  }
}
