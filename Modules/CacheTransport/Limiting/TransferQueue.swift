internal import CacheCore

/// Who may transfer now and who is next: the decisions of ``TransferLimits``, without waiting. O(log n) for each.
struct TransferQueue {
  typealias Ticket = WaitingLine.Ticket

  enum Admission: Equatable { case admitted, waiting, full }

  /// Every so many-th slot is for who has waited longest.
  static let turn = WaitingLine.turn

  private struct Host {
    var active = 0
    var line: WaitingLine
  }

  private struct Waiter {
    var host: String
    var level: LoadPriority.Level
  }

  private let limits: TransferLimits
  private var hosts: [String: Host] = [:]
  private var waiters: [Ticket: Waiter] = [:]
  private var granted = 0
  /// Hosts with a waiter and a free slot, by their best and by their oldest waiter.
  private var ranked = IndexedHeap<String, WaitingLine.Rank>()
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
    waiters[ticket] = Waiter(host: host, level: level)
    hosts[host, default: Host(line: WaitingLine(isLastFirst: limits.order == .lastInFirstOut))].line.set(ticket, level)
    refresh(host)
    if next() != nil { return .admitted }
    guard let most = limits.maximumWaiting, waiters.count > most else { return .waiting }
    withdraw(ticket)
    return .full
  }

  /// A waiter has become more urgent; one that does not wait is ignored.
  mutating func raise(_ ticket: Ticket, to level: LoadPriority.Level) {
    guard let waiter = waiters[ticket], level > waiter.level else { return }
    waiters[ticket]?.level = level
    hosts[waiter.host]?.line.set(ticket, level)
    refresh(waiter.host)
  }

  /// A waiter goes away.
  ///
  /// - Returns: whether it waited.
  @discardableResult
  mutating func withdraw(_ ticket: Ticket) -> Bool {
    guard let waiter = waiters.removeValue(forKey: ticket) else { return false }
    hosts[waiter.host]?.line.remove(ticket)
    refresh(waiter.host)
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
    guard let ticket = hosts[name]?.line.next(isTurn: isTurn) else { return nil }
    active += 1
    granted += 1
    hosts[name]?.active += 1
    hosts[name]?.line.countServed()
    withdraw(ticket)
    return ticket
  }

  /// Sets where a host stands among those that could have a slot.
  private mutating func refresh(_ name: String) {
    guard let host = hosts[name] else { return }
    if host.active < limits.perHost, let best = host.line.bestRank, let oldest = host.line.oldest {
      ranked.set(name, best)
      aged.set(name, oldest)
    } else {
      ranked.remove(name)
      aged.remove(name)
      if host.active == 0, host.line.isEmpty { hosts[name] = nil }
    }
  }
}
