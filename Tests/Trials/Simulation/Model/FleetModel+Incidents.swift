import CacheCore
import CacheTesting
import MemoryStore

/// Losses and purges.
extension FleetModel {
  /// Ends a node. Its requests fail, and its leases expire.
  mutating func lose(_ node: Int, _ now: Double) {
    guard !router.isLost(node) else { return }
    router.set(node, isLost: true)
    nodes[node].cache = Self.nodeCache(configuration)
    for (id, load) in loads where load.node == node {
      loads[id] = nil
      if load.holdsLease, let lease = leases[load.object], let duration = configuration.leaseDuration {
        let renewals = renewals(of: lease, until: now)
        report.leaseCalls += renewals
        leases[load.object]?.expiresAt = lease.grantedAt + Double(renewals) * duration / 3 + duration
      }
      // A load that only commits has served its requests.
      guard nodes[node].loads[load.object] == id else { continue }
      report.failed.add(workload.sizes[load.object], times: 1 + load.joined)
    }
    nodes[node].loads = [:]
  }

  /// Starts a node again, with an empty tier.
  mutating func restore(_ node: Int) { router.set(node, isLost: false) }

  /// Ends the shared tier. Loads that wait for a lease send their requests when they call the tier the next time.
  mutating func loseShared(_ now: Double) {
    guard sharedLostAt == nil else { return }
    sharedLostAt = now
    shared?.removeAll()
    leases = [:]
    positions = [:]
    for id in loads.keys { loads[id]?.holdsLease = false }
  }

  /// Starts the shared tier again without its data. Messages may have been lost, so each node marks its responses stale.
  mutating func restoreShared(_ now: Double) {
    sharedLostAt = nil
    staleBefore = now
  }

  /// Removes the selected responses from all tiers at once. Running requests to the origin do not store theirs.
  mutating func purge(_ purge: FleetConfiguration.Purge) {
    let isSelected = selects(purge.selection)
    for (id, load) in loads where load.isSent && isSelected(load.object) { loads[id]?.isPurged = true }
    for cache in nodes.map(\.cache) + [shared].compactMap(\.self) {
      for key in cache.keys() {
        if let object = workload.index(of: key.resource), isSelected(object) { cache.remove(key) }
      }
    }
  }

  private func selects(_ selection: FleetConfiguration.Purge.Selection) -> (Int) -> Bool {
    switch selection {
    case .object(let name):
      let purged = workload.index(of: name)
      return { $0 == purged }
    case .share(let share):
      let seed = SplitMix.mix(configuration.seed, 2)
      return { object in
        var generator = SplitMix(state: SplitMix.mix(seed, UInt64(object)))
        return generator.unit() < share
      }
    }
  }
}
