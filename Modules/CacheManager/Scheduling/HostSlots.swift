internal import CacheCore
internal import HTTPTypes

/// The limit for loads that have sent a request to one host and have received no byte of a body yet.
///
/// These loads hold no memory. If many of their bodies began at once, the engine would buffer the first bytes of all those for
/// which the memory budget has no room. A silent server thus delays only further loads from that server.
final class HostSlots: Sendable {
  /// The host that receives a request, with its scheme and its port.
  struct Host: Hashable, Sendable {
    private let scheme: String?
    private let authority: String?

    init(of request: HTTPRequest) { (scheme, authority) = (request.scheme, request.authority) }
  }

  private struct Known {
    let semaphore: PrioritySemaphore
    /// The number of loads that have a slot or wait for one.
    var loads = 0
  }

  /// The number of hosts that are known without loads, so that the next load need not make a semaphore.
  private static let mostIdle = 64

  private let count: Int
  private let hosts = Lock<[Host: Known]>([:])

  /// - Parameter count: The number of slots of each host.
  init(_ count: Int) { self.count = count }

  /// Returns a slot, or `nil` if the load must wait for one.
  func enterWithoutWaiting(_ host: Host) -> HostSlot? {
    let slot = slot(host)
    if slot.semaphore.enterWithoutWaiting() { return slot }
    forget(host)
    return nil
  }

  /// - Throws: A cancellation of the calling task while it waits.
  func enter(_ host: Host, _ priority: LoadPriority) async throws(CacheError) -> HostSlot {
    let slot = slot(host)
    guard await slot.semaphore.enter(priority) else {
      forget(host)
      throw .cancelled
    }
    return slot
  }

  private func slot(_ host: Host) -> HostSlot {
    let semaphore = hosts.withLock { add(to: &$0[host, default: Known(semaphore: PrioritySemaphore(count))]) }
    return HostSlot(host: host, semaphore: semaphore, slots: self)
  }

  private func add(to known: inout Known) -> PrioritySemaphore {
    known.loads += 1
    return known.semaphore
  }

  fileprivate func forget(_ host: Host) {
    hosts.withLock { hosts in
      guard let index = hosts.index(forKey: host) else { return }
      hosts.values[index].loads -= 1
      if hosts.values[index].loads == 0, hosts.count > Self.mostIdle { hosts.remove(at: index) }
    }
  }
}

/// The slot of one load, which the load leaves once.
struct HostSlot: Sendable {
  fileprivate let host: HostSlots.Host
  fileprivate let semaphore: PrioritySemaphore
  fileprivate let slots: HostSlots

  func leave() {
    semaphore.leave()
    slots.forget(host)
  }
}
