/// The counts of one simulated run.
struct FleetReport: Codable, Equatable, Sendable {
  /// Requests of clients and the bytes of their responses.
  struct Share: Codable, Equatable, Sendable {
    var requests = 0
    var bytes = 0

    mutating func add(_ size: Int, times count: Int = 1) {
      requests += count
      bytes += size * count
    }
  }

  /// The time from the first to the last request, in seconds.
  var duration = 0.0

  // Each request of a client is in exactly one of these.

  /// Requests served by a fresh response in the node's own tier.
  var memoryHits = Share()
  /// Requests served by a fresh response in the shared tier, without waiting for a lease.
  var sharedHits = Share()
  /// Requests served by a response that another node stored while this node waited for the lease.
  var sharedAfterWait = Share()
  /// Requests that joined a running load of the same object in the same node.
  var coalesced = Share()
  /// Requests served by a complete response that their node requested.
  var fetched = Share()
  /// Requests served by a stored response after a revalidation by their node.
  var revalidated = Share()
  /// Requests whose node was lost before it responded, or that no node could receive.
  var failed = Share()

  /// Requests to the origin for a complete response, including those of nodes that were lost.
  var originRequests = 0
  /// Conditional requests to the origin, including those of nodes that were lost.
  var revalidations = 0
  /// The bytes that nodes wrote into the shared tier.
  var bytesToShared = 0
  /// The bytes that nodes read from the shared tier, including those of stale responses.
  var bytesFromShared = 0

  /// Lookups in the shared tier.
  var sharedLookups = 0
  /// Responses written into the shared tier.
  var sharedStores = 0
  /// Updates of stored metadata after a revalidation.
  var sharedUpdates = 0
  /// Calls that request, renew or end a lease.
  var leaseCalls = 0

  /// Loads that waited for a lease of another node.
  var leaseWaits = 0
  /// The sum of these waits, in seconds.
  var leaseWaitTime = 0.0
  /// The longest of these waits, in seconds.
  var longestLeaseWait = 0.0
  /// Leases that were granted because the node that held them was lost.
  var takeovers = 0
  /// Requests that were sent to the origin without a lease after the longest wait.
  var waitTimeouts = 0

  /// The numbers of requests that each node received.
  var requestsOfNodes: [Int] = []

  /// All requests of clients.
  var total: Share {
    [memoryHits, sharedHits, sharedAfterWait, coalesced, fetched, revalidated, failed].reduce(into: Share()) {
      $0.requests += $1.requests
      $0.bytes += $1.bytes
    }
  }

  /// The bytes of complete responses from the origin.
  var bytesFromOrigin: Int { fetched.bytes }

  /// All calls to the shared tier.
  var sharedCalls: Int { sharedLookups + sharedStores + sharedUpdates + leaseCalls }

  /// The requests of the busiest node, divided by the mean of all nodes.
  var imbalance: Double {
    let sum = requestsOfNodes.reduce(0, +)
    return sum > 0 ? Double(requestsOfNodes.max() ?? 0) * Double(requestsOfNodes.count) / Double(sum) : 1
  }
}
