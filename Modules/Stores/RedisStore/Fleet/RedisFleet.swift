#if Redis
public import CacheCore

/// A group of processes that share a ``RedisCache``. While one of them requests a resource, the other processes wait for its
/// response. A purge reaches all of them.
///
/// ```swift
/// let shared = try RedisCache(url: url)
/// configuration.store = try LayeredStore([DiskCache(folder: folder), shared])
/// configuration.fleet = RedisFleet(shared, member: "web-1")
/// ```
///
/// If a process ends during its request, its lease expires, and another process sends the request. If the server cannot be
/// reached, every process sends its own requests. After ``memberTimeout``, it also revalidates each stored response before its
/// use, because another process may have purged the response.
public final class RedisFleet: CacheFleet, CheckedComponent {
  /// The cache, which closes its connections when it is released.
  private let cache: RedisCache
  private var engine: RedisEngine { cache.engine }

  /// The time after which the lease of a process that has ended expires. A running process renews its leases.
  public let leaseDuration: Duration
  /// The time after which a process without contact with the server revalidates each stored response. Each of the
  /// two messages of a purge waits for no process longer than that. It must be the same in all processes.
  public let memberTimeout: Duration
  /// The name of this process, or `nil`.
  public let member: String?
  /// Whether a manager has joined under the name. Further managers of this process join without it.
  private let isNameUsed = Lock(false)
  package let validity: Result<Void, CacheError>

  /// Creates a fleet of the processes that use the servers and the namespace of a cache. With a time that is too short, a manager
  /// fails each load with `CacheError.Code.invalidConfiguration`.
  ///
  /// - Parameters:
  ///   - cache: The shared cache. The fleet uses its connections.
  ///   - leaseDuration: The time after which the lease of a process that has ended expires, at least 10 ms. It should be longer
  ///     than the pauses of a process, and shorter than half of the manager's `collapseTimeout`.
  ///   - memberTimeout: The time after which a process without contact with the server revalidates each stored response, at least
  ///     20 ms. The process asks the server for messages 20 times in this time.
  ///   - member: A name for this process that stays the same when it is restarted, and that no other process has. A process with
  ///     a name catches up with the purges since its last run. Without one, it marks all responses on its disk stale when it
  ///     starts.
  public init(
    _ cache: RedisCache, leaseDuration: Duration = .seconds(2), memberTimeout: Duration = .seconds(1), member: String? = nil
  ) {
    self.cache = cache
    self.leaseDuration = max(leaseDuration, .milliseconds(10))
    self.memberTimeout = max(memberTimeout, .milliseconds(20))
    self.member = member
    validity = Result { () throws(CacheError) in
      try CacheError.require("leaseDuration", leaseDuration, in: .milliseconds(10)...)
      try CacheError.require("memberTimeout", memberTimeout, in: .milliseconds(20)...)
    }
  }

  public func join(
    receive: @escaping @Sendable (String, Bool) async throws(CacheError) -> Void,
    missed: @escaping @Sendable () async throws(CacheError) -> Void
  ) -> any FleetMembership {
    let isFirst = isNameUsed.withLock { isUsed in
      defer { isUsed = true }
      return !isUsed
    }
    return RedisMembership(
      isFirst ? member : nil, engine, timeout: memberTimeout,
      left: { [weak self] in if isFirst { self?.isNameUsed.withLock { $0 = false } } }, receive: receive, missed: missed)
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

/// A lease that the process renews until it ends.
final class RedisLease: RequestLease {
  let resource, selection: String
  let token: UInt64
  /// The number of renewals, after ten times the duration of the lease.
  private static let renewalLimit = 30

  private let engine: RedisEngine
  private let renewal: Task<Void, Never>
  private let hasEnded = Lock(false)

  init(_ resource: String, _ selection: String, token: UInt64, _ engine: RedisEngine, _ duration: Duration) {
    (self.resource, self.selection, self.token, self.engine) = (resource, selection, token, engine)
    // The task does not retain the lease, so that a released lease ends.
    renewal = Task {
      // A client that reads slowly must not hold the lease for as long as it reads.
      for _ in 0..<Self.renewalLimit {
        guard (try? await SystemClock().sleep(for: duration / 3)) != nil else { return }
        // If the server cannot be reached, the lease may not have expired yet.
        let isHeld = try? await engine.changeLease(resource, selection, token, to: LeaseState.held, for: duration)
        if isHeld == false { return }
      }
    }
  }

  deinit { abandon() }

  func endAsStored() { end(LeaseState.stored, LeaseState.retention) }

  func endAsNotShared(for duration: Duration) { end(LeaseState.notShared, duration) }

  func abandon() { end(LeaseState.abandoned, LeaseState.retention) }

  private func end(_ state: String, _ duration: Duration) {
    let isFirst = hasEnded.withLock { hasEnded in
      defer { hasEnded = true }
      return !hasEnded
    }
    guard isFirst else { return }
    engine.endLease { [renewal, engine, resource, selection, token] in
      // A renewal that is in progress must not follow the end.
      renewal.cancel()
      await renewal.value
      _ = try? await engine.changeLease(resource, selection, token, to: state, for: duration)
    }
  }
}

extension RedisEngine {
  /// Changes the state of a lease. Returns `false` if another process has been granted it.
  fileprivate func changeLease(
    _ resource: String, _ selection: String, _ token: UInt64, to state: String, for duration: Duration
  ) async throws(CacheError) -> Bool {
    let reply = try await run(
      .changeLease, keys: [names.lease(resource, selection)],
      [.text("\(token)"), .text(state), .milliseconds(duration)], for: HashTag(resource))
    return reply.integer == 1
  }
}
#endif
