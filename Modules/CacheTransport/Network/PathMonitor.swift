#if canImport(Network)
internal import Dispatch
internal import Network

/// The system's view of the network, from `NWPathMonitor`.
///
/// ```swift
/// var policy = RetryPolicy.standard
/// policy.network = PathMonitor()
/// ```
///
/// Reachable is what is not known to be unreachable: before the system's first word, and where a connection has to be set up on
/// demand (a VPN).
public final class PathMonitor: NetworkMonitor {
  private let monitor = NWPathMonitor()
  private let gate = ReachabilityGate()

  /// A monitor, which is a subscription with the system; it ends when it is let go of. One serves any number of policies.
  public init() {
    monitor.pathUpdateHandler = { [gate] path in gate.set(isOpen: path.status != .unsatisfied) }
    monitor.start(queue: DispatchQueue(label: "etagere.path-monitor", qos: .utility))
  }

  deinit { monitor.cancel() }

  public var isReachable: Bool { gate.isOpen }

  public func waitUntilReachable() async throws(CancellationError) { try await gate.pass() }
}
#endif
