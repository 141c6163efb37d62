internal import CacheCore
private import Synchronization

/// A ``TransferQueue`` with a lock and the continuations of the waiters.
final class TransferGate: Sendable {
  private enum Outcome { case admitted, full, cancelled }

  private struct State {
    var queue: TransferQueue
    var waiting: [TransferQueue.Ticket: Resumption<Outcome>] = [:]
  }

  private let state: Lock<State>
  private let tickets = Atomic<UInt64>(0)

  init(_ limits: TransferLimits) { state = Lock(State(queue: TransferQueue(limits))) }

  var active: Int { state.withLock { $0.queue.active } }
  var waiting: Int { state.withLock { $0.queue.waiting } }

  /// Returns a free slot, or `nil` if the request must wait or its task was cancelled.
  func enterWithoutWaiting(host: String, level: LoadPriority.Level) -> TransferSlot? {
    if Task.isCancelled { return nil }
    let ticket = tickets.wrappingAdd(1, ordering: .relaxed).newValue
    let isAdmitted = state.withLock { state in
      if state.queue.enter(ticket, host: host, level: level) == .admitted { return true }
      state.queue.withdraw(ticket)
      return false
    }
    return isAdmitted ? TransferSlot(self, host: host) : nil
  }

  /// Waits for a slot.
  ///
  /// - Throws: `CacheError.Code.queueFull`, or the cancellation of the calling task.
  func enter(host: String, priority: LoadPriority) async throws(CacheError) -> TransferSlot {
    let ticket = tickets.wrappingAdd(1, ordering: .relaxed).newValue
    // Registered before the level is read: a raise in between would be lost. A raise for a ticket that does not wait is ignored.
    let observation = priority.onRaise { [weak self] level in self?.raise(ticket, to: level) }
    defer { observation.cancel() }
    let outcome = await withTaskCancellationHandler {
      await withResumption { wait(ticket, host, priority, $0) }
    } onCancel: {
      cancel(ticket)
    }
    switch outcome {
    case .admitted: return TransferSlot(self, host: host)
    case .full: throw CacheError(.queueFull, reason: "\(waiting) transfers are already waiting")
    case .cancelled: throw .cancelled
    }
  }

  private func wait(
    _ ticket: TransferQueue.Ticket, _ host: String, _ priority: LoadPriority,
    _ continuation: Resumption<Outcome>
  ) {
    let outcome: Outcome? = state.withLock { state in
      // An earlier cancellation found no waiter to wake. A concurrent one waits for the lock.
      if Task.isCancelled { return .cancelled }
      switch state.queue.enter(ticket, host: host, level: priority.level) {
      case .admitted: return .admitted
      case .full: return .full
      case .waiting:
        state.waiting[ticket] = continuation
        return nil
      }
    }
    if let outcome { continuation.resume(returning: outcome) }
  }

  private func raise(_ ticket: TransferQueue.Ticket, to level: LoadPriority.Level) {
    state.withLock { $0.queue.raise(ticket, to: level) }
  }

  private func cancel(_ ticket: TransferQueue.Ticket) {
    let waiter = state.withLock { state in
      _ = state.queue.withdraw(ticket)
      return state.waiting.removeValue(forKey: ticket)
    }
    waiter?.resume(returning: .cancelled)
  }

  func leave(host: String) {
    let next = state.withLock { state in
      state.queue.leave(host: host).flatMap { state.waiting.removeValue(forKey: $0) }
    }
    next?.resume(returning: .admitted)
  }
}

/// The decisions of ``TransferLimits``, without waiting: which transfers may run and which is next. Each costs O(log n).
struct TransferQueue {
  typealias Ticket = PriorityQueue.Ticket

  enum Admission: Equatable { case admitted, waiting, full }

  /// The interval at which a slot goes to the oldest waiter.
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
  /// The hosts that have a waiter and a free slot, ordered by their best and by their oldest waiter.
  private var ranked = IndexedHeap<String, PriorityQueue.Rank>()
  private var aged = IndexedHeap<String, Ticket>()

  /// The number of occupied slots.
  private(set) var active = 0

  init(_ limits: TransferLimits) { self.limits = limits }

  var waiting: Int { waiters.count }

  /// The number of hosts in memory. Hosts without transfers and waiters are removed.
  var knownHosts: Int { hosts.count }

  func active(at host: String) -> Int { hosts[host]?.active ?? 0 }

  /// Requests a slot.
  mutating func enter(_ ticket: Ticket, host: String, level: LoadPriority.Level) -> Admission {
    waiters[ticket] = host
    hosts[host, default: Host(queue: PriorityQueue(newestFirst: limits.newestFirst))].queue.insert(ticket, level)
    refresh(host)
    if next() != nil { return .admitted }
    guard let most = limits.maximumWaiting, waiters.count > most else { return .waiting }
    withdraw(ticket)
    return .full
  }

  /// Raises the priority of a waiter. A ticket that does not wait is ignored.
  mutating func raise(_ ticket: Ticket, to level: LoadPriority.Level) {
    guard let host = waiters[ticket], hosts[host]?.queue.raise(ticket, to: level) == true else { return }
    refresh(host)
  }

  /// Removes a waiter.
  ///
  /// - Returns: Whether the ticket was waiting.
  @discardableResult
  mutating func withdraw(_ ticket: Ticket) -> Bool {
    guard let host = waiters.removeValue(forKey: ticket) else { return false }
    hosts[host]?.queue.remove(ticket)
    refresh(host)
    return true
  }

  /// Frees a slot.
  ///
  /// - Returns: The waiter that gets the slot, or `nil` if there is none.
  mutating func leave(host: String) -> Ticket? {
    active -= 1
    hosts[host]?.active -= 1
    refresh(host)
    return next()
  }

  /// Assigns a slot. Each arrival or departure admits at most one waiter, so no waiter is left while a slot is free.
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

  /// Updates the position of a host among those that could use a slot.
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
