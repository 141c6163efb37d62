import Testing

@testable import Simulation

@Suite("Simulated fleets: losses and purges")
struct IncidentTests {
  @Test("a lost node's objects move to another node, and it returns empty", arguments: [(nil, 3), (10_000, 1)])
  func lostNode(shared: Int?, originRequests: Int) throws {
    // Given
    var configuration = FleetFixture.configuration(nodes: 3, .hash, shared: shared)
    let node = try #require(FleetFixture.firstNode(configuration))
    configuration.losses = [.init(node: node, from: 10, to: 20)]
    // When
    let report = FleetModel.run(configuration, FleetFixture.workload([0, 5, 15, 16, 25, 26]))
    // Then
    #expect(report.originRequests == originRequests)
    #expect(report.memoryHits.requests == 3)
    #expect(report.failed.requests == 0)
    #expect(report.requestsOfNodes[node] == 4)
  }

  @Test("requests fail if their node is lost before it responds, or if no node remains")
  func failures() {
    var configuration = FleetFixture.configuration()
    configuration.losses = [.init(node: 0, from: 0.02, to: 5)]
    let report = FleetModel.run(configuration, FleetFixture.workload([0, 0.01, 1, 6]))
    #expect(report.failed.requests == 3)
    #expect(report.originRequests == 2)
    #expect(report.fetched.requests == 1)
  }

  @Test(
    "a purged object is requested again",
    arguments: [
      (FleetConfiguration.Purge.Selection.object("a"), 3), (.object("b"), 2), (.share(1), 3), (.share(0), 2),
    ])
  func purge(_ selection: FleetConfiguration.Purge.Selection, _ originRequests: Int) {
    for shared in [nil, 10_000] {
      var configuration = FleetFixture.configuration(shared: shared)
      configuration.purges = [.init(selection: selection, time: 10)]
      let workload = FleetFixture.workload([(0, "a"), (1, "b"), (9, "a"), (10, "a")])
      #expect(FleetModel.run(configuration, workload).originRequests == originRequests)
    }
  }

  @Test("a purge selects about its share of the objects")
  func share() {
    let names = (0..<1_000).map(String.init)
    var configuration = FleetFixture.configuration()
    configuration.memory = 10_000_000
    configuration.purges = [.init(selection: .share(0.3), time: 10)]
    let report = FleetModel.run(configuration, FleetFixture.workload(names.map { (0, $0) } + names.map { (20, $0) }))
    #expect((250...350).contains(report.originRequests - 1_000))
  }

  @Test("a response that was requested before a purge is used and not stored", arguments: [nil, 10_000], [0.02, 0.052_5])
  func purgeDuringRequest(shared: Int?, time: Double) {
    // The origin responds after 50 ms, or after 52 ms if the shared tier is read before. That tier stores it after 53 ms.
    var configuration = FleetFixture.configuration(shared: shared)
    configuration.purges = [.init(selection: .object("a"), time: time)]
    let report = FleetModel.run(configuration, FleetFixture.workload([0, 1, 2]))
    #expect(report.originRequests == 2)
    #expect(report.fetched.requests == 2)
    #expect(report.bytesToShared == (shared == nil ? 0 : 1_000))
  }

  @Test("without the shared tier, nodes revalidate each response, and after its return once")
  func lostSharedTier() {
    var configuration = FleetFixture.configuration(shared: 10_000)
    configuration.losses = [.init(node: nil, from: 10, to: 20)]
    // Up to 11 s the node is current.
    let report = FleetModel.run(configuration, FleetFixture.workload([0, 10.5, 12, 12.5, 19, 25, 26]))
    #expect(report.originRequests == 1)
    #expect(report.revalidations == 4)
    #expect(report.memoryHits.requests == 2)
    #expect(report.failed.requests == 0)
  }

  @Test("nodes that wait for a lease when the shared tier is lost send their own requests")
  func lostWhileWaiting() {
    var configuration = FleetFixture.configuration(nodes: 3, shared: 10_000)
    configuration.losses = [.init(node: nil, from: 0.01, to: nil)]
    let report = FleetModel.run(configuration, FleetFixture.workload(Array(repeating: 0, count: 100)))
    #expect(report.originRequests == 3)
    #expect(report.total.requests == 100 && report.failed.requests == 0)
  }
}
