import Testing

@testable import Simulation

@Suite("Simulated fleets: conservation")
struct ConservationTests {
  private static func workload(_ seed: UInt64) -> Workload {
    var zipf = Workload.Zipf()
    (zipf.objects, zipf.requests, zipf.rate) = (500, 5_000, 500)
    return Workload(zipf, seed: seed)
  }

  private static func configurations(_ seed: UInt64) -> [FleetConfiguration] {
    FleetConfiguration.Routing.allCases.flatMap { routing in
      [nil, 0, 2_000_000, 100_000_000].flatMap { shared in
        [1, 3, 20].map { nodes in
          var configuration = FleetFixture.configuration(nodes: nodes, routing, shared: shared, lifetime: 2)
          configuration.memory = 1_000_000
          configuration.seed = seed
          return configuration
        }
      }
    }
  }

  @Test("each request and each byte is counted once", arguments: [1, 2] as [UInt64])
  func conservation(seed: UInt64) {
    let workload = Self.workload(seed)
    let bytes = workload.requests.reduce(0) { $0 + workload.sizes[$1.object] }
    for configuration in Self.configurations(seed) {
      let report = FleetModel.run(configuration, workload)
      #expect(report.total == .init(requests: 5_000, bytes: bytes))
      #expect(report.requestsOfNodes.reduce(0, +) == 5_000)
      #expect(report.failed.requests == 0)
      #expect(report.fetched.requests == report.originRequests)
      #expect(report.revalidated.requests == report.revalidations)
      #expect(report.bytesFromShared >= report.sharedHits.bytes + report.sharedAfterWait.bytes)
      #expect(report.bytesToShared <= report.bytesFromOrigin)
      #expect(report.longestLeaseWait <= report.leaseWaitTime)
      if configuration.shared == nil { #expect(report.sharedCalls == 0 && report.bytesFromShared == 0) }
      if configuration.nodes == 1 { #expect(report.leaseWaits == 0) }
    }
  }

  @Test("losses and purges lose no request", arguments: [1, 2] as [UInt64])
  func incidents(seed: UInt64) {
    let workload = Self.workload(seed)
    for var configuration in Self.configurations(seed) {
      configuration.losses = [
        .init(node: 0, from: 2, to: 4), .init(node: 1, from: 3, to: nil), .init(node: nil, from: 5, to: 7),
      ]
      configuration.losses.removeAll { ($0.node ?? 0) >= configuration.nodes }
      configuration.purges = [.init(selection: .share(0.5), time: 1), .init(selection: .object("0"), time: 6)]
      let report = FleetModel.run(configuration, workload)
      #expect(report.total.requests == 5_000)
      #expect(report.fetched.requests <= report.originRequests)
      #expect(report.revalidated.requests <= report.revalidations)
      if configuration.nodes > 2 { #expect(report.failed.requests < 200) }
      #expect(FleetModel.run(configuration, workload) == report)
    }
  }

  @Test("a larger shared tier never costs the origin more than a few requests")
  func largerSharedTier() {
    let workload = Self.workload(3)
    let requests = [0, 1_000_000, 4_000_000, 100_000_000].map { shared in
      var configuration = FleetFixture.configuration(nodes: 10, shared: shared)
      configuration.memory = 1_000_000
      return FleetModel.run(configuration, workload).originRequests
    }
    #expect(requests == requests.sorted(by: >))
    #expect(requests.last == Set(workload.requests.map(\.object)).count)
  }
}
