internal import CacheCore

/// Who may transfer now and who is next: the decisions of ``TransferLimits``, without waiting. O(log n) for each.
struct TransferQueue {
  typealias Ticket = PriorityQueue.Ticket

  enum Admission: Equatable { case admitted, waiting, full }

  /// Every so many-th slot is for who has waited longest.
  static let turn = PriorityQueue.turn

  private struct Host {
    var active = 0
    var queue: PriorityQueue
  }

  private let limits: TransferLimits
  private var hosts: [String: Host] = [:]
  /// The host of each waiter.
  private var waiters: [Ticket: String] = [:]
  private var granted = 0
  /// Hosts with a waiter and a free slot, by their best and by their oldest waiter.
  private var ranked = IndexedHeap<String, PriorityQueue.Rank>()
  private var aged = IndexedHeap<String, Ticket>()

  /// Slots that are taken.
  private(set) var active = 0

  init(_ limits: TransferLimits) { self.limits = limits }

  var waiting: Int { waiters.count }

  /// What is remembered of hosts: nothing of those where nothing happens.
  var knownHosts: Int { hosts.count }

  func active(at host: String) -> Int { hosts[host]?.active ?? 0 }

  /// Somebody wants a slot.
  mutating func enter(_ ticket: Ticket, host: String, level: LoadPriority.Level) -> Admission {
    waiters[ticket] = host
    hosts[host, default: Host(queue: PriorityQueue(newestFirst: limits.newestFirst))].queue.insert(ticket, level)
    refresh(host)
    if next() != nil { return .admitted }
    guard let most = limits.maximumWaiting, waiters.count > most else { return .waiting }
    withdraw(ticket)
    return .full
  }

  /// A waiter has become more urgent; one that does not wait is ignored.
  mutating func raise(_ ticket: Ticket, to level: LoadPriority.Level) {
    guard let host = waiters[ticket], hosts[host]?.queue.raise(ticket, to: level) == true else { return }
    refresh(host)
  }

  /// A waiter goes away.
  ///
  /// - Returns: whether it waited.
  @discardableResult
  mutating func withdraw(_ ticket: Ticket) -> Bool {
    guard let host = waiters.removeValue(forKey: ticket) else { return false }
    hosts[host]?.queue.remove(ticket)
    refresh(host)
    return true
  }

  /// A slot has become free.
  ///
  /// - Returns: who has it now; nil: nobody wants it.
  mutating func leave(host: String) -> Ticket? {
    active -= 1
    hosts[host]?.active -= 1
    refresh(host)
    return next()
  }

  /// Gives a slot out. One that comes or goes lets at most one in: nobody waits who need not.
  private mutating func next() -> Ticket? {
    guard active < limits.total else { return nil }
    let isTurn = granted % Self.turn == Self.turn - 1
    guard let name = isTurn ? aged.first?.member : ranked.first?.member else { return nil }
    guard let ticket = hosts[name]?.queue.next(isTurn: isTurn) else { return nil }
    active += 1
    granted += 1
    hosts[name]?.active += 1
    hosts[name]?.queue.countServed()
    withdraw(ticket)
    return ticket
  }

  /// Sets where a host stands among those that could have a slot.
  private mutating func refresh(_ name: String) {
    guard let host = hosts[name] else { return }
    if host.active < limits.perHost, let best = host.queue.bestRank, let oldest = host.queue.oldest {
      ranked.set(name, best)
      aged.set(name, oldest)
    } else {
      ranked.remove(name)
      aged.remove(name)
      if host.active == 0, host.queue.isEmpty { hosts[name] = nil }
    }
  }
}
