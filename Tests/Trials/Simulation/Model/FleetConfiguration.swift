/// The parameters of a simulated fleet. All times are in seconds, and all sizes in bytes.
struct FleetConfiguration: Codable, Equatable, Sendable {
  /// The choice of the node that receives a request.
  enum Routing: String, CaseIterable, Codable, Sendable {
    /// A node that is drawn by a seeded generator for each request.
    case random
    /// The node of the object on a ``HashRing``.
    case hash
  }

  /// The loss of a node, or of the shared tier.
  struct Loss: Codable, Equatable, Sendable {
    /// The number of the node, from 0 on, or `nil` for the shared tier.
    var node: Int?
    var from: Double
    /// The time at which it returns without its data, or `nil` if it does not return.
    var to: Double?
  }

  /// A purge, which removes responses from all nodes and from the shared tier.
  struct Purge: Codable, Equatable, Sendable {
    enum Selection: Codable, Equatable, Sendable {
      case object(String)
      /// A pseudorandom share of the objects, from 0 to 1.
      case share(Double)
    }

    var selection: Selection
    var time: Double
  }

  var nodes = 1
  var routing = Routing.random
  /// The points of each node on the ring.
  var pointsPerNode = 128
  /// The size of each node's own tier.
  var memory = 128_000_000
  /// The size of the shared tier, or `nil` for a fleet without one.
  var shared: Int?
  /// The freshness lifetime of each response, or `nil` if responses never become stale.
  var lifetime: Double? = 60
  /// The time from a request to the origin to the end of its response.
  var originLatency = 0.05
  /// The time of one call to the shared tier.
  var sharedLatency = 0.001
  /// The time after which the lease of a lost node expires, or `nil` for a fleet without leases.
  var leaseDuration: Double? = 2
  /// The longest wait for a lease. A node then sends a request without one.
  var longestWait = 2.5
  /// The time without contact to the shared tier after which a node revalidates every response.
  var memberTimeout = 1.0
  var losses: [Loss] = []
  var purges: [Purge] = []
  var seed: UInt64 = 1
}
