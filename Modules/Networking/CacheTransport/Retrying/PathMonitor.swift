#if canImport(Network)
internal import Dispatch
internal import Network

/// A monitor of the system's network paths, based on `NWPathMonitor`.
///
/// ```swift
/// var policy = RetryPolicy.standard
/// policy.network = PathMonitor()
/// ```
///
/// The network counts as reachable unless the system reports otherwise: also before its first report, and if a connection must
/// first be established on demand (a VPN).
public final class PathMonitor: NetworkMonitor {
  private let monitor = NWPathMonitor()
  private let gate = ReachabilityGate()

  /// Creates a monitor, which subscribes to the system until it is released. One monitor serves any number of policies.
  public init() {
    monitor.pathUpdateHandler = { [gate] path in gate.set(isOpen: path.status != .unsatisfied) }
    monitor.start(queue: DispatchQueue(label: "etagere.path-monitor", qos: .utility))
  }

  deinit { monitor.cancel() }

  public var isReachable: Bool { gate.isOpen }

  public func waitUntilReachable() async throws(CancellationError) { try await gate.pass() }
}
#endif
