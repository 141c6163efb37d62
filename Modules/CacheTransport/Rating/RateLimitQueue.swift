internal import CacheCore

/// A queue of requests that wait for a token, first in, first out.
///
/// The first waiter sleeps on the clock, and the others wait for it. A cancelled waiter leaves without a token.
final class RateLimitQueue: Sendable {
  private enum Outcome { case first, cancelled }

  private struct State {
    var bucket: TokenBucket
    var hasFirst = false
    var nextTicket: UInt64 = 0
    var tickets = IndexedHeap<UInt64, UInt64>()
    var waiting: [UInt64: CheckedContinuation<Outcome, Never>] = [:]
  }

  private let state: Lock<State>
  private let clock: any CacheClock

  init(_ limit: RateLimit, clock: any CacheClock) {
    state = Lock(State(bucket: TokenBucket(limit)))
    self.clock = clock
  }

  /// The number of waiters, including the first.
  var waiting: Int { state.withLock { $0.waiting.count + ($0.hasFirst ? 1 : 0) } }

  /// Takes a token without waiting. Returns `false` if the request must wait or its task was cancelled.
  func passWithoutWaiting() -> Bool {
    if Task.isCancelled { return false }
    let now = clock.uptime
    return state.withLock { state in
      guard !state.hasFirst else { return false }
      return state.bucket.take(at: now)
    }
  }

  /// Waits for a token.
  func pass() async throws(CacheError) {
    if Task.isCancelled { throw .cancelled }
    enum Entry { case passes, first, waits(UInt64) }
    let now = clock.uptime
    let entry: Entry = state.withLock { state in
      guard !state.hasFirst else {
        state.nextTicket += 1
        return .waits(state.nextTicket)
      }
      if state.bucket.take(at: now) { return .passes }
      state.hasFirst = true
      return .first
    }
    switch entry {
    case .passes: return
    case .first: try await lead()
    case .waits(let ticket):
      guard await waitForTurn(ticket) == .first else { throw .cancelled }
      try await lead()
    }
  }

  /// Waits for the next token as the first waiter, then wakes the next one.
  private func lead() async throws(CacheError) {
    defer { step() }
    while true {
      if Task.isCancelled { throw .cancelled }
      let now = clock.uptime
      let delay = state.withLock { $0.bucket.take(at: now) ? .zero : $0.bucket.delay(at: now) }
      guard delay > .zero else { return }
      do throws(CancellationError) {
        try await clock.sleep(for: delay)
      } catch {
        throw .cancelled
      }
    }
  }

  private func step() {
    let next: CheckedContinuation<Outcome, Never>? = state.withLock { state in
      guard let ticket = state.tickets.first?.member else {
        state.hasFirst = false
        return nil
      }
      state.tickets.remove(ticket)
      return state.waiting.removeValue(forKey: ticket)
    }
    next?.resume(returning: .first)
  }

  private func waitForTurn(_ ticket: UInt64) async -> Outcome {
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let outcome: Outcome? = state.withLock { state in
          if Task.isCancelled { return .cancelled }
          // The queue may have become empty since the ticket was drawn.
          guard state.hasFirst else {
            state.hasFirst = true
            return .first
          }
          state.tickets.set(ticket, ticket)
          state.waiting[ticket] = continuation
          return nil
        }
        if let outcome { continuation.resume(returning: outcome) }
      }
    } onCancel: {
      let waiter = state.withLock { state in
        state.tickets.remove(ticket)
        return state.waiting.removeValue(forKey: ticket)
      }
      waiter?.resume(returning: .cancelled)
    }
  }
}
