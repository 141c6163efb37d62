import CacheCore
import MemoryStore

/// The steps of a load: lookup in the shared tier, lease, request to the origin, and commit to the shared tier.
extension FleetModel {
  /// Reads the shared tier.
  mutating func lookUp(_ id: Int, _ now: Double) {
    guard var load = loads[id] else { return }
    guard let shared, sharedLostAt == nil else { return send(id, now) }
    report.sharedLookups += 1
    let stamp = shared.entry(for: workload.keys[load.object])?.value(as: Stamp.self)
    // A lookup transfers a stale response too.
    if stamp != nil { report.bytesFromShared += workload.sizes[load.object] }
    if let stamp, isFresh(stamp, now) {
      endWait(id, now)
      store(stamp, in: load.node, load.object)
      endLease(of: load, now, isStored: false)
      return finish(id, load.waitStart == nil ? \.sharedHits : \.sharedAfterWait)
    }
    // A node without a response learns of a stale one, and reads the tier again under its lease.
    load.isLatest = load.holdsLease || load.position != nil || stamp == nil
    load.hasStale = load.hasStale || stamp != nil
    loads[id] = load
    if load.holdsLease || load.hasTimedOut || configuration.leaseDuration == nil { send(id, now) } else { askForLease(id, now) }
  }

  mutating func askForLease(_ id: Int, _ now: Double) {
    // Without leases, a node with a stale response looks for a newer one before it sends a request.
    let event = configuration.leaseDuration == nil ? Event.lookUp(id) : .requestLease(id)
    events.add(event, at: now + configuration.sharedLatency)
  }

  /// Handles the reply to a request for a lease.
  mutating func requestLease(_ id: Int, _ now: Double) {
    guard var load = loads[id] else { return }
    guard sharedLostAt == nil else { return send(id, now) }
    report.leaseCalls += 1
    if let lease = leases[load.object] {
      if lease.expiresAt > now { return wait(id, now) }
      report.takeovers += 1
    } else if let stored = positions[load.object], stored.number != load.position, now - stored.time < Self.positionLifetime {
      loads[id]?.position = stored.number
      return events.add(.lookUp(id), at: now + configuration.sharedLatency)
    }
    leases[load.object] = Lease(grantedAt: now)
    load.holdsLease = true
    loads[id] = load
    if load.hasStale, !load.isLatest {
      events.add(.lookUp(id), at: now + configuration.sharedLatency)
    } else {
      send(id, now)
    }
  }

  private mutating func wait(_ id: Int, _ now: Double) {
    guard var load = loads[id] else { return }
    let start = load.waitStart ?? now
    if load.waitStart == nil { report.leaseWaits += 1 }
    load.waitStart = start
    if now >= start + configuration.longestWait {
      load.hasTimedOut = true
      events.add(.lookUp(id), at: now + configuration.sharedLatency)
    } else {
      events.add(.requestLease(id), at: now + load.interval + configuration.sharedLatency)
      load.interval = min(load.interval * 1.5, Self.longestInterval)
    }
    loads[id] = load
  }

  private mutating func endWait(_ id: Int, _ now: Double) {
    guard let start = loads[id]?.waitStart else { return }
    report.leaseWaitTime += now - start
    report.longestLeaseWait = max(report.longestLeaseWait, now - start)
  }

  /// Sends the request to the origin.
  mutating func send(_ id: Int, _ now: Double) {
    guard let load = loads[id] else { return }
    endWait(id, now)
    if load.hasTimedOut { report.waitTimeouts += 1 }
    loads[id]?.isSent = true
    if load.hasStale { report.revalidations += 1 } else { report.originRequests += 1 }
    events.add(.respond(id), at: now + configuration.originLatency)
  }

  /// Handles the response of the origin. The node's own tier stores it at once, and the shared tier after a call.
  mutating func respond(_ id: Int, _ now: Double) {
    guard var load = loads[id] else { return }
    let stamp = Stamp(validatedAt: now, freshUntil: configuration.lifetime.map { now + $0 } ?? .infinity)
    if !load.isPurged { store(stamp, in: load.node, load.object) }
    finish(id, load.hasStale ? \.revalidated : \.fetched)
    guard shared != nil, sharedLostAt == nil else { return }
    if load.isPurged {
      endLease(of: load, now, isStored: false)
    } else {
      load.stamp = stamp
      loads[id] = load
      events.add(.commit(id), at: now + configuration.sharedLatency)
    }
  }

  /// Stores the response in the shared tier, and ends the lease.
  mutating func commit(_ id: Int, _ now: Double) {
    guard let load = loads.removeValue(forKey: id), let stamp = load.stamp, let shared, sharedLostAt == nil else {
      return
    }
    guard !load.isPurged else { return endLease(of: load, now, isStored: false) }
    let (key, size) = (workload.keys[load.object], workload.sizes[load.object])
    let entry = MemoryEntry(stamp, cost: size, revision: Self.revision)
    var isStored = true
    if load.hasStale {
      // A response with status 304 has no body, so an entry that was evicted stays evicted.
      report.sharedUpdates += 1
      _ = shared.update(key) { $0 == nil ? .keep : .replace(entry) }
    } else {
      isStored = shared.insert(entry, for: key)
      if isStored {
        report.sharedStores += 1
        report.bytesToShared += size
      }
    }
    endLease(of: load, now, isStored: isStored)
  }

  private mutating func endLease(of load: Load, _ now: Double, isStored: Bool) {
    guard load.holdsLease, let lease = leases.removeValue(forKey: load.object) else { return }
    report.leaseCalls += 1 + renewals(of: lease, until: now)
    guard isStored else { return }
    lastPosition += 1
    positions[load.object] = (lastPosition, now)
  }

  /// The number of renewals, one in each third of the lease's duration.
  func renewals(of lease: Lease, until now: Double) -> Int {
    configuration.leaseDuration.map { Int((now - lease.grantedAt) / ($0 / 3)) } ?? 0
  }

  private func store(_ stamp: Stamp, in node: Int, _ object: Int) {
    let entry = MemoryEntry(stamp, cost: workload.sizes[object], revision: Self.revision)
    nodes[node].cache.insert(entry, for: workload.keys[object])
  }

  /// Serves the request that began the load, and those that joined it.
  private mutating func finish(_ id: Int, _ share: WritableKeyPath<FleetReport, FleetReport.Share>) {
    guard let load = loads.removeValue(forKey: id) else { return }
    nodes[load.node].loads[load.object] = nil
    let size = workload.sizes[load.object]
    report[keyPath: share].add(size)
    report.coalesced.add(size, times: load.joined)
  }
}
