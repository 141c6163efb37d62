internal import CacheCore

/// The limit for loads that have sent a request to one host and have received no byte of a body yet.
///
/// These loads hold no memory. If many of their bodies began at once, the engine would buffer the first bytes of all those for
/// which the memory budget has no room. A silent server thus delays only further loads from that server.
final class HostSlots: Sendable {
  private struct Host {
    let semaphore: PrioritySemaphore
    /// The number of loads that have a slot or wait for one.
    var loads = 0
  }

  private let count: Int
  private let hosts = Lock<[String: Host]>([:])

  /// - Parameter count: The number of slots of each host.
  init(_ count: Int) { self.count = count }

  /// Returns a slot, or `nil` if the load must wait for one.
  func enterWithoutWaiting(_ host: String) -> HostSlot? {
    let slot = slot(host)
    if slot.semaphore.enterWithoutWaiting() { return slot }
    forget(host)
    return nil
  }

  /// - Throws: A cancellation of the calling task while it waits.
  func enter(_ host: String, _ priority: LoadPriority) async throws(CacheError) -> HostSlot {
    let slot = slot(host)
    guard await slot.semaphore.enter(priority) else {
      forget(host)
      throw .cancelled
    }
    return slot
  }

  private func slot(_ host: String) -> HostSlot {
    let semaphore = hosts.withLock { hosts in
      var known = hosts[host] ?? Host(semaphore: PrioritySemaphore(count))
      known.loads += 1
      hosts[host] = known
      return known.semaphore
    }
    return HostSlot(host: host, semaphore: semaphore, slots: self)
  }

  fileprivate func forget(_ host: String) {
    hosts.withLock { hosts in
      hosts[host]?.loads -= 1
      if hosts[host]?.loads == 0 { hosts[host] = nil }
    }
  }
}

/// The slot of one load, which the load leaves once.
struct HostSlot: Sendable {
  fileprivate let host: String
  fileprivate let semaphore: PrioritySemaphore
  fileprivate let slots: HostSlots

  func leave() {
    semaphore.leave()
    slots.forget(host)
  }
}
