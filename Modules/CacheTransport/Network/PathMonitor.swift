#if canImport(Network)
internal import Dispatch
internal import Network

/// The system's view of the network, from `NWPathMonitor`.
///
/// ```swift
/// var policy = RetryPolicy.standard
/// policy.network = PathMonitor.shared
/// ```
///
/// Reachable is what is not known to be unreachable: before the system's first word, and where a connection has to be set up on demand (a VPN).
public final class PathMonitor: NetworkMonitor {
  /// One for everybody: a monitor costs a subscription with the system.
  public static let shared = PathMonitor()

  private let monitor = NWPathMonitor()
  private let gate = ReachabilityGate()

  /// A monitor of its own; it ends when it is let go of.
  public init() {
    monitor.pathUpdateHandler = { [gate] path in gate.set(isOpen: path.status != .unsatisfied) }
    monitor.start(queue: DispatchQueue(label: "etagere.path-monitor", qos: .utility))
  }

  deinit { monitor.cancel() }

  public var isReachable: Bool { gate.isOpen }

  public func waitUntilReachable() async throws(CancellationError) { try await gate.pass() }
}
#endif
