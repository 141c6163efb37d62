#if Redis
public import CacheCore

/// The processes that share a ``RedisCache``. While one of them requests a resource, the others wait for its response.
///
/// ```swift
/// let shared = try RedisCache(url: url)
/// configuration.store = try LayeredStore([DiskCache(folder: folder), shared])
/// configuration.fleet = RedisFleet(shared)
/// ```
///
/// If a process ends during its request, its lease expires, and another process sends the request. If the server cannot be
/// reached, every process sends its own requests.
public final class RedisFleet: CacheFleet {
  private let engine: RedisEngine

  /// The time after which the lease of a process that has ended expires. A running process renews its leases.
  public let leaseDuration: Duration

  /// Creates a fleet of the processes that use the servers and the namespace of a cache.
  ///
  /// - Parameters:
  ///   - cache: The shared cache. The fleet uses its connections.
  ///   - leaseDuration: The time after which the lease of a process that has ended expires, at least 10 ms. It should be longer
  ///     than the pauses of a process, and shorter than the manager's `collapseTimeout`.
  public init(_ cache: RedisCache, leaseDuration: Duration = .seconds(3)) {
    engine = cache.engine
    self.leaseDuration = max(leaseDuration, .milliseconds(10))
  }

  public func requestLease(
    of resource: String, selection: String, lookedUpAt known: UInt64?
  ) async throws(CacheError) -> LeaseReply {
    let reply = try await engine.run(
      .acquire, keys: [engine.names.lease(resource, selection)], [.milliseconds(leaseDuration), .text("\(known ?? 0)")],
      for: HashTag(resource))
    guard case .array(let parts) = reply, parts.count == 2, let state = parts[0].text,
      let token = parts[1].text.flatMap(UInt64.init)
    else { throw CacheError(.storeUnavailable, reason: "the Redis server sent an unexpected reply about a lease") }
    switch state {
    case LeaseState.granted:
      return .granted(RedisLease(resource, selection, token: token, engine, leaseDuration))
    case LeaseState.stored: return .stored(position: token)
    case LeaseState.notShared: return .notShared
    default: return .held
    }
  }
}

/// The states of a lease in the server. Each is followed by the token.
enum LeaseState {
  /// The reply to the process that now holds the lease.
  static let granted = "G"
  static let held = "H"
  static let stored = "S"
  static let notShared = "N"
  static let abandoned = "A"

  /// The time for which the token of an ended lease stays in the server, so that a late commit is refused.
  static let retention = Duration.seconds(60)
}
#endif
