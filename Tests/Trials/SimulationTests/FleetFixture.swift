import CacheTesting
import Testing

@testable import Simulation

/// The fleets and traces of the tests. By default, responses stay fresh and all of them fit into each tier.
enum FleetFixture {
  static func configuration(
    nodes: Int = 1, _ routing: FleetConfiguration.Routing = .random, shared: Int? = nil, lifetime: Double? = nil
  ) -> FleetConfiguration {
    var configuration = FleetConfiguration()
    configuration.nodes = nodes
    configuration.routing = routing
    configuration.shared = shared
    configuration.lifetime = lifetime
    return configuration
  }

  /// Returns requests for objects of 1,000 bytes.
  static func workload(_ requests: [(time: Double, object: String)]) -> Workload {
    var workload = Workload()
    for request in requests { workload.append(time: request.time, object: request.object, size: 1_000) }
    return workload
  }

  /// Returns requests for one object.
  static func workload(_ times: [Double]) -> Workload { workload(times.map { ($0, "a") }) }

  /// Returns so many requests for one object that each of a few nodes receives some, one each tenth of a second.
  static func spread(from start: Double = 0) -> [Double] { (0..<200).map { start + Double($0) / 10 } }

  /// Returns the node that receives the first request.
  static func firstNode(_ configuration: FleetConfiguration) -> Int? {
    var alone = configuration
    (alone.losses, alone.purges) = ([], [])
    return FleetModel.run(alone, workload([0])).requestsOfNodes.firstIndex(of: 1)
  }
}
