#if AsyncHTTP
internal import CacheCore
internal import NIOCore

/// The requests that run on each host and those that wait for a connection.
///
/// async-http-client has a queue too, but a request that waits there longer than the connect timeout fails. In this queue a
/// request may wait as long as others make progress.
final class HostQueue: Sendable {
  private struct Host {
    var running = 0
    /// Whether HTTP/2 was seen. Streams of one connection are then counted instead of connections.
    var isMultiplexed = false
    var lastProgress = NIODeadline.now()
    var waiting: [@Sendable () -> Bool] = []
    /// The number of requests at the start of `waiting` that have started. They are removed in batches.
    var served = 0

    var isIdle: Bool { running == 0 && waiting.isEmpty }

    /// Passes the slot of a request that has ended to the next request, or frees it.
    mutating func passOn(limit: (Host) -> Int) -> (@Sendable () -> Bool)? {
      lastProgress = .now()
      let next = running <= limit(self) ? popFirst() : nil
      if next == nil { running -= 1 }
      return next
    }

    /// Gives a free slot to the next request.
    mutating func takeSlot(limit: (Host) -> Int) -> (@Sendable () -> Bool)? {
      guard running < limit(self), let next = popFirst() else { return nil }
      running += 1
      return next
    }

    private mutating func popFirst() -> (@Sendable () -> Bool)? {
      guard served < waiting.count else { return nil }
      let next = waiting[served]
      waiting[served] = { false }
      served += 1
      if served == waiting.count || served > 256, served * 2 > waiting.count {
        waiting.removeFirst(served)
        served = 0
      }
      return next
    }
  }

  /// The minimum number of streams that a server should allow (RFC 9113 §6.5.2).
  private static let streamsPerHost = 100

  private let connectionsPerHost: Int
  private let hosts = Lock<[String: Host]>([:])

  init(connectionsPerHost: Int) { self.connectionsPerHost = max(connectionsPerHost, 1) }

  /// Calls `start` when the host has a free slot: at once, or after `wait` from another caller's ``leave(_:)``. A `start` that
  /// returns `false` needs no slot.
  func enter(_ host: String, wait: () -> Void, start: @escaping @Sendable () -> Bool) {
    let isFree = hosts.withLock { hosts in
      // Changed in place, as below: a local copy would make each change of `waiting` copy the whole array.
      enter(&hosts[host, default: Host()], start)
    }
    guard isFree else { return wait() }
    if !start() { leave(host) }
  }

  /// Ends a request that had a slot and starts the next one.
  func leave(_ host: String) {
    while true {
      let next: (@Sendable () -> Bool)? = hosts.withLock { hosts in
        let next = hosts[host]?.passOn(limit: limit)
        if hosts[host]?.isIdle == true { hosts[host] = nil }
        return next
      }
      guard let next, !next() else { return }
    }
  }

  /// Notes that the host uses HTTP/2, so that many requests share a connection.
  func noteMultiplexing(_ host: String) {
    let isNew = hosts.withLock { hosts in
      guard hosts[host]?.isMultiplexed == false else { return false }
      hosts[host]?.isMultiplexed = true
      return true
    }
    guard isNew else { return }
    while let next = takeSlot(host) {
      if !next() { leave(host) }
    }
  }

  /// The time at which a request of the host last started or ended.
  func lastProgress(_ host: String) -> NIODeadline { hosts.withLock { $0[host]?.lastProgress } ?? .now() }

  private func takeSlot(_ host: String) -> (@Sendable () -> Bool)? {
    hosts.withLock { $0[host]?.takeSlot(limit: limit) }
  }

  private func enter(_ host: inout Host, _ start: @escaping @Sendable () -> Bool) -> Bool {
    guard host.running < limit(host) else {
      host.waiting.append(start)
      return false
    }
    host.running += 1
    return true
  }

  private func limit(_ host: Host) -> Int {
    host.isMultiplexed ? max(connectionsPerHost, Self.streamsPerHost) : connectionsPerHost
  }
}
#endif
