#if Redis
internal import CacheCore

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
        guard (try? await Task.sleep(for: duration / 3)) != nil else { return }
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
