package import CacheCore

/// Limits how many pieces of work run at once. Further ones suspend, without a thread; the highest priority runs first.
///
/// Within one level, work on a value that exists already goes before work that makes a first value: few values wait between two
/// steps then.
package final class PrioritySemaphore: Sendable {
  private struct State {
    var free: Int
    var lastTicket: PriorityQueue.Ticket = 0
    var queue = PriorityQueue()
    /// `true`: admitted; `false`: cancelled.
    var waiting: [PriorityQueue.Ticket: CheckedContinuation<Bool, Never>] = [:]

    mutating func takeFree() -> Bool {
      guard free > 0 else { return false }
      free -= 1
      return true
    }

    mutating func remove(_ ticket: PriorityQueue.Ticket) -> CheckedContinuation<Bool, Never>? {
      queue.remove(ticket)
      return waiting.removeValue(forKey: ticket)
    }
  }

  private let state: Lock<State>

  package init(_ count: Int) { state = Lock(State(free: max(1, count))) }

  /// The number of waiters.
  package var waiting: Int { state.withLock { $0.waiting.count } }

  /// Does the work, as soon as its turn has come.
  ///
  /// - Parameters:
  ///   - priority: that of the load that needs the work. A raise counts while it waits.
  ///   - isContinuing: whether the work is done on a value that an earlier step made, and that is held until then.
  ///   - body: the work.
  /// - Throws: the cancellation of the calling task while it waits; what the work throws.
  package func work<Value>(
    _ priority: LoadPriority, isContinuing: Bool = false, _ body: () async throws(CacheError) -> Value
  ) async throws(CacheError) -> Value {
    guard await enter(priority, isContinuing) else { throw .cancelled }
    defer { leave() }
    return try await body()
  }

  private func enter(_ priority: LoadPriority, _ isContinuing: Bool) async -> Bool {
    let ticket: PriorityQueue.Ticket? = state.withLock { state in
      guard !state.takeFree() else { return nil }
      state.lastTicket += 1
      return state.lastTicket
    }
    guard let ticket else { return true }
    // Before the level is read: a raise in between would be lost. A raise of a ticket that does not wait yet is ignored.
    let observation = priority.onRaise { [weak self] level in self?.raise(ticket, to: level) }
    defer { observation.cancel() }
    return await withTaskCancellationHandler {
      await withCheckedContinuation { wait(ticket, priority, isContinuing, $0) }
    } onCancel: {
      state.withLock { $0.remove(ticket) }?.resume(returning: false)
    }
  }

  private func wait(
    _ ticket: PriorityQueue.Ticket, _ priority: LoadPriority, _ isContinuing: Bool,
    _ continuation: CheckedContinuation<Bool, Never>
  ) {
    let isAdmitted: Bool? = state.withLock { state in
      // A cancellation before this found no continuation; a later one waits for the lock.
      if Task.isCancelled { return false }
      if state.takeFree() { return true }
      state.queue.insert(ticket, priority.level, isContinuing: isContinuing)
      state.waiting[ticket] = continuation
      return nil
    }
    if let isAdmitted { continuation.resume(returning: isAdmitted) }
  }

  private func raise(_ ticket: PriorityQueue.Ticket, to level: LoadPriority.Level) {
    state.withLock { _ = $0.queue.raise(ticket, to: level) }
  }

  private func leave() {
    let next: CheckedContinuation<Bool, Never>? = state.withLock { state in
      guard let ticket = state.queue.next() else {
        state.free += 1
        return nil
      }
      return state.remove(ticket)
    }
    next?.resume(returning: true)
  }
}
