#if AsyncHTTP
internal import CacheCore
internal import NIOCore

/// Who may ask a host now, and who has to wait for a connection.
///
/// async-http-client has a queue of its own, but a request that waits in it for longer than connecting may take fails; here it
/// may wait as long as others make progress.
final class HostQueue: Sendable {
  private struct Host {
    var running = 0
    /// Streams of one connection take the place of connections, once HTTP/2 has been seen.
    var isMultiplexed = false
    var lastTurn = NIODeadline.now()
    var waiting: [@Sendable () -> Bool] = []
    /// `waiting` before this place have had their turn; they are cut off in batches.
    var served = 0

    var isIdle: Bool { running == 0 && waiting.isEmpty }

    /// One that had a place gives it to the next, or back.
    mutating func passOn(limit: (Host) -> Int) -> (@Sendable () -> Bool)? {
      lastTurn = .now()
      let next = running <= limit(self) ? popFirst() : nil
      if next == nil { running -= 1 }
      return next
    }

    /// A place that is free goes to the next.
    mutating func takeTurn(limit: (Host) -> Int) -> (@Sendable () -> Bool)? {
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

  /// Streams that a server is advised to allow at the least (RFC 9113 §6.5.2).
  private static let streamsPerHost = 100

  private let connectionsPerHost: Int
  private let hosts = Lock<[String: Host]>([:])

  init(connectionsPerHost: Int) { self.connectionsPerHost = max(connectionsPerHost, 1) }

  /// Calls `start` when the host has a place free: at once, or after `wait` from another caller's ``leave(_:)``. A `start` that
  /// returns false needs no place.
  func enter(_ host: String, wait: () -> Void, start: @escaping @Sendable () -> Bool) {
    let isFree = hosts.withLock { hosts in
      // In place, here as below: a copy in hand would make each change of `waiting` copy the whole of it.
      enter(&hosts[host, default: Host()], start)
    }
    guard isFree else { return wait() }
    if !start() { leave(host) }
  }

  /// A request that had a place has ended, so the next one's turn comes.
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

  /// The host speaks HTTP/2: many requests share a connection.
  func noteMultiplexing(_ host: String) {
    let isNews = hosts.withLock { hosts in
      guard hosts[host]?.isMultiplexed == false else { return false }
      hosts[host]?.isMultiplexed = true
      return true
    }
    guard isNews else { return }
    while let next = takeTurn(host) {
      if !next() { leave(host) }
    }
  }

  /// When somebody's turn came last.
  func lastTurn(_ host: String) -> NIODeadline { hosts.withLock { $0[host]?.lastTurn } ?? .now() }

  private func takeTurn(_ host: String) -> (@Sendable () -> Bool)? {
    hosts.withLock { $0[host]?.takeTurn(limit: limit) }
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
