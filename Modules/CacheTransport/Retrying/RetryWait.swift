internal import CacheCore

/// Carries a wait out: for time, or for a network.
struct RetryWait: Sendable {
  let policy: RetryPolicy
  let clock: any CacheClock

  /// Returns when the next request may be sent.
  ///
  /// - Parameters:
  ///   - delay: what the policy decided.
  ///   - remaining: time that is left for everything; nil: no limit.
  ///   - isForNetwork: whether a network that is gone may be the reason: who has got an answer has one.
  /// - Returns: false when no network came in time.
  /// - Throws: a cancellation, as soon as the task is cancelled.
  func pass(_ delay: Duration, remaining: Duration?, isForNetwork: Bool) async throws(CacheError) -> Bool {
    do throws(CancellationError) {
      if isForNetwork, let network = policy.network, !network.isReachable {
        return try await reach(network, within: min(policy.networkWaitLimit, remaining ?? policy.networkWaitLimit))
      }
      if delay > .zero { try await clock.sleep(for: delay) }
      return true
    } catch {
      throw .cancelled
    }
  }

  // What a network's return lets loose is one machine's requests, not the world's: no back-off on top.
  private func reach(_ network: any NetworkMonitor, within limit: Duration) async throws(CancellationError) -> Bool {
    enum End: Sendable { case reached, elapsed, cancelled }
    guard limit > .zero else { return false }
    let end = await withTaskGroup(of: End.self) { group in
      group.addTask {
        do throws(CancellationError) { try await network.waitUntilReachable() } catch { return .cancelled }
        return .reached
      }
      group.addTask { [clock] in
        do throws(CancellationError) { try await clock.sleep(for: limit) } catch { return .cancelled }
        return .elapsed
      }
      let first = await group.next() ?? .cancelled
      group.cancelAll()
      return first
    }
    if end == .cancelled || Task.isCancelled { throw CancellationError() }
    return end == .reached
  }
}
