internal import CacheCore

/// The wait before a retry, for a delay or for a network.
struct RetryWait: Sendable {
  let policy: RetryPolicy
  let clock: any CacheClock

  /// Waits until the next request may be sent.
  ///
  /// - Parameters:
  ///   - delay: The delay of the policy's decision.
  ///   - remaining: The time left of the limits, or `nil` if there is no limit.
  ///   - isForNetwork: Whether a missing network may be the cause. It is not if a response arrived.
  /// - Returns: `false` if no network became available in time.
  /// - Throws: A cancellation, as soon as the task is cancelled.
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

  // No back-off after a network returns, because that releases the requests of only one machine.
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
