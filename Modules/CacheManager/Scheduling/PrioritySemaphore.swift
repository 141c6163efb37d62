package import CacheCore

/// A semaphore that limits the number of concurrent pieces of work. Further work suspends without blocking a thread, and the
/// highest priority runs first.
///
/// Within one level, work on an existing value runs before work that makes a first value. Few values then wait between two steps.
package final class PrioritySemaphore: Sendable {
  private struct State {
    var free: Int
    var lastTicket: PriorityQueue.Ticket = 0
    var queue = PriorityQueue()
    /// The waiting tasks. They are resumed with `true` if they are admitted, and with `false` if they are cancelled.
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

  /// Runs the work as soon as a slot is free.
  ///
  /// - Parameters:
  ///   - priority: The priority of the load that needs the work. A raise takes effect while the work waits.
  ///   - isContinuing: Whether the work continues from the value of an earlier step, which is held until then.
  ///   - body: The work.
  /// - Throws: A cancellation of the calling task while it waits, or the error of the work.
  package func work<Value>(
    _ priority: LoadPriority, isContinuing: Bool = false, _ body: () async throws(CacheError) -> Value
  ) async throws(CacheError) -> Value {
    guard await enter(priority, isContinuing) else { throw .cancelled }
    defer { leave() }
    return try await body()
  }

  /// Takes a free slot, which ``leave()`` returns. Returns `false` if there is none.
  func enterWithoutWaiting() -> Bool { state.withLock { $0.takeFree() } }

  /// Waits for a slot, which ``leave()`` returns. Returns `false` if the calling task is cancelled while it waits.
  func enter(_ priority: LoadPriority, _ isContinuing: Bool = false) async -> Bool {
    let ticket: PriorityQueue.Ticket? = state.withLock { state in
      guard !state.takeFree() else { return nil }
      state.lastTicket += 1
      return state.lastTicket
    }
    guard let ticket else { return true }
    // Registered before the level is read, because a raise in between would be lost. A raise of a ticket that does not wait yet
    // is ignored.
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
      // An earlier cancellation found no continuation. A later one waits for the lock.
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

  func leave() {
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
