internal import CacheCore
internal import HTTPTypes

/// The limit for loads that have sent a request to one host, and that the memory budget does not cover yet.
///
/// A load into memory leaves its slot when the announced length of its body is reserved. Other loads leave it at the first byte.
/// Until then, the engine may buffer bytes that nothing counts; `URLSession` buffers whole bodies. A server that is silent or
/// slow delays only further loads from that server.
final class HostSlots: Sendable {
  /// The host that receives a request, with its scheme and its port.
  struct Host: Hashable, Sendable {
    private let scheme: String?
    private let authority: String?

    init(of request: HTTPRequest) { (scheme, authority) = (request.scheme, request.authority) }
  }

  private struct HostState {
    let semaphore: PrioritySemaphore
    /// The number of loads that have a slot or wait for one.
    var loads: Int
  }

  private struct State {
    var hosts: [Host: HostState] = [:]
    /// The number of hosts without loads.
    var idle = 0
  }

  /// The number of hosts that are known without loads, so that the next load need not make a semaphore. One more makes the
  /// budget forget all of them.
  static let mostIdle = 64

  private let count: Int
  private let state = Lock(State())

  /// - Parameter count: The number of slots of each host.
  init(_ count: Int) { self.count = count }

  /// The number of known hosts.
  var known: Int { state.withLock { $0.hosts.count } }

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
    let semaphore = state.withLock { state in
      guard let index = state.hosts.index(forKey: host) else {
        let new = PrioritySemaphore(count)
        state.hosts[host] = HostState(semaphore: new, loads: 1)
        return new
      }
      if state.hosts.values[index].loads == 0 { state.idle -= 1 }
      state.hosts.values[index].loads += 1
      return state.hosts.values[index].semaphore
    }
    return HostSlot(host: host, semaphore: semaphore, slots: self)
  }

  fileprivate func forget(_ host: Host) {
    state.withLock { state in
      guard let index = state.hosts.index(forKey: host) else { return }
      state.hosts.values[index].loads -= 1
      guard state.hosts.values[index].loads == 0 else { return }
      state.idle += 1
      guard state.idle > Self.mostIdle else { return }
      state.hosts = state.hosts.filter { $0.value.loads > 0 }
      state.idle = 0
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
