import CacheCore
import CacheTesting
import MemoryStore

/// A discrete-event model of a fleet: nodes with a tier of their own, an optional shared tier with leases, and an origin.
///
/// Events happen at the times of the trace and after the configured latencies. The model reads no clock, and equal parameters
/// give equal reports.
struct FleetModel {
  /// The state of a stored response. Both tiers store it instead of a body.
  struct Stamp: Sendable {
    /// The time of the last response from the origin.
    var validatedAt: Double
    var freshUntil: Double
  }

  struct Node {
    var cache: MemoryCache
    /// The running load of each object.
    var loads: [Int: Int] = [:]
    var requests = 0
  }

  /// One load of an object by a node, from the miss in the node's own tier to the response.
  struct Load {
    let node: Int
    let object: Int
    /// The requests that joined this load.
    var joined = 0
    /// Whether a stale response is known, which a conditional request can revalidate.
    var hasStale: Bool
    /// Whether the shared tier has been read since the node learned of the stale response.
    var isLatest = false
    /// The last position of the lease for which the node has read the shared tier.
    var position: Int?
    var holdsLease = false
    var waitStart: Double?
    var interval = FleetModel.firstInterval
    var hasTimedOut = false
    var isSent = false
    /// The state of the response, after the origin has responded.
    var stamp: Stamp?
    var isPurged = false
  }

  struct Lease {
    let grantedAt: Double
    /// The time of expiry, or infinity while the node that holds the lease renews it.
    var expiresAt = Double.infinity
  }

  enum Event {
    case lookUp(Int), requestLease(Int), respond(Int), commit(Int)
    case lose(Int?), restore(Int?), purge(FleetConfiguration.Purge)
  }

  // The values of Fetch+Lease.swift in CacheManager, and of LeaseState in RedisStore.
  static let (firstInterval, longestInterval) = (0.005, 0.1)
  static let positionLifetime = 60.0
  static let revision = Revision(high: 0, low: 1)

  let configuration: FleetConfiguration
  let workload: Workload
  var report = FleetReport()
  var nodes: [Node]
  var loads: [Int: Load] = [:]
  var nextLoad = 0
  var events = EventQueue<Event>()
  var shared: MemoryCache?
  var sharedLostAt: Double?
  /// Responses that were validated before this time are stale, because messages may have been lost.
  var staleBefore = -Double.infinity
  var leases: [Int: Lease] = [:]
  /// The number and the time of the last response of each object that was stored under a lease.
  var positions: [Int: (number: Int, time: Double)] = [:]
  var lastPosition = 0
  var router: Router

  private init(_ configuration: FleetConfiguration, _ workload: Workload) {
    self.configuration = configuration
    self.workload = workload
    nodes = (0..<configuration.nodes).map { _ in Node(cache: Self.nodeCache(configuration)) }
    router = Router(configuration, objects: workload.keys.map { UInt64(bitPattern: Int64($0.fingerprint)) })
    shared = configuration.shared.map(Self.sharedCache)
  }

  /// Simulates a fleet.
  static func run(_ configuration: FleetConfiguration, _ workload: Workload) -> FleetReport {
    var model = FleetModel(configuration, workload)
    model.run()
    return model.report
  }

  /// Returns an empty cache of a node. A single shard evicts in the exact order of the policy.
  static func nodeCache(_ configuration: FleetConfiguration) -> MemoryCache {
    MemoryCache(limits: .init(cost: configuration.memory), clock: ManualClock(), shards: 1, reactsToMemoryPressure: false)
  }

  /// Returns an empty shared tier. It evicts like a Redis server with `allkeys-lru`, but exactly.
  static func sharedCache(_ size: Int) -> MemoryCache {
    MemoryCache(
      limits: .init(cost: size, entryCost: .max), eviction: LeastRecentlyUsed(), clock: ManualClock(), shards: 1,
      reactsToMemoryPressure: false)
  }

  private mutating func run() {
    for loss in configuration.losses where loss.node.map({ $0 < nodes.count }) ?? (shared != nil) {
      events.add(.lose(loss.node), at: loss.from)
      if let end = loss.to { events.add(.restore(loss.node), at: end) }
    }
    for purge in configuration.purges { events.add(.purge(purge), at: purge.time) }
    // Events of the same time as a request happen before it.
    for request in workload.requests {
      while let time = events.nextTime, time <= request.time { handleNextEvent() }
      receive(request)
    }
    while events.nextTime != nil { handleNextEvent() }
    report.duration = workload.duration
    report.requestsOfNodes = nodes.map(\.requests)
  }

  private mutating func handleNextEvent() {
    guard let (now, event) = events.removeFirst() else { return }
    switch event {
    case .lookUp(let load): lookUp(load, now)
    case .requestLease(let load): requestLease(load, now)
    case .respond(let load): respond(load, now)
    case .commit(let load): commit(load, now)
    case .lose(let node?): lose(node, now)
    case .lose(nil): loseShared(now)
    case .restore(let node?): restore(node)
    case .restore(nil): restoreShared(now)
    case .purge(let purge): self.purge(purge)
    }
  }

  private mutating func receive(_ request: Workload.Request) {
    let (object, now) = (request.object, request.time)
    let size = workload.sizes[object]
    guard let node = router.node(for: object) else { return report.failed.add(size) }
    nodes[node].requests += 1
    let stamp = nodes[node].cache.entry(for: workload.keys[object])?.value(as: Stamp.self)
    if let stamp, isFresh(stamp, now) { return report.memoryHits.add(size) }
    if let running = nodes[node].loads[object] {
      loads[running]?.joined += 1
      return
    }
    let id = nextLoad
    nextLoad += 1
    nodes[node].loads[object] = id
    loads[id] = Load(node: node, object: object, hasStale: stamp != nil)
    if shared == nil || sharedLostAt != nil {
      send(id, now)
    } else if stamp == nil {
      events.add(.lookUp(id), at: now + configuration.sharedLatency)
    } else {
      askForLease(id, now)
    }
  }

  /// Whether a node can use a response without a request to the origin.
  func isFresh(_ stamp: Stamp, _ now: Double) -> Bool {
    guard now < stamp.freshUntil, stamp.validatedAt >= staleBefore else { return false }
    // A node that is not current may have missed a purge.
    return sharedLostAt.map { now < $0 + configuration.memberTimeout } ?? true
  }
}
