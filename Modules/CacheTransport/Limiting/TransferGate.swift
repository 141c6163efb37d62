internal import CacheCore
private import Synchronization

/// A ``TransferQueue`` with a lock and the continuations of the waiters.
final class TransferGate: Sendable {
  private enum Outcome { case admitted, full, cancelled }

  private struct State {
    var queue: TransferQueue
    var waiting: [TransferQueue.Ticket: CheckedContinuation<Outcome, Never>] = [:]
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
      await withCheckedContinuation { wait(ticket, host, priority, $0) }
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
    _ continuation: CheckedContinuation<Outcome, Never>
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
