package import CacheCore

/// Room for so many pieces of work at once. Who finds none waits, without a thread, and the most urgent is let in first.
///
/// Of those who are equally urgent, who goes on with a value goes before who is to make his first: what is begun is brought to its end, and few values lie between two steps.
package final class Workplaces: Sendable {
  private struct Waiter {
    let priority: LoadPriority
    let goesOn: Bool
    let enter: CheckedContinuation<Bool, Never>
  }

  private struct State {
    var free: Int
    var last = 0
    var waiting: [Int: Waiter] = [:]
    /// Who was cancelled before it began to wait.
    var gone: Set<Int> = []

    /// The most urgent one, of equals one who goes on, and of those who came first.
    var next: Int? {
      waiting.map { (level: $0.value.priority.level, goesOn: $0.value.goesOn ? 1 : 0, number: $0.key) }
        .max { ($0.level, $0.goesOn, -$0.number) < ($1.level, $1.goesOn, -$1.number) }?.number
    }
  }

  private let state: Lock<State>

  package init(_ count: Int) { state = Lock(State(free: max(1, count))) }

  /// How many wait.
  package var waiting: Int { state.withLock { $0.waiting.count } }

  /// Does the work, once there is room for it.
  ///
  /// - Parameters:
  ///   - priority: of who waits for it.
  ///   - goesOn: it is done with a value that was made before, which lies there until then.
  ///   - body: the work.
  /// - Throws: a cancellation, when the task is cancelled while it waits; and what the work throws.
  package func work<Value>(
    _ priority: LoadPriority, goesOn: Bool = false, _ body: () async throws(CacheError) -> Value
  ) async throws(CacheError) -> Value {
    guard await enter(priority, goesOn) else { throw .cancelled }
    defer { leave() }
    return try await body()
  }

  private func enter(_ priority: LoadPriority, _ goesOn: Bool) async -> Bool {
    let number: Int? = state.withLock { state in
      state.last += 1
      guard state.free == 0 else {
        state.free -= 1
        return nil
      }
      return state.last
    }
    guard let number else { return true }
    defer { state.withLock { _ = $0.gone.remove(number) } }
    return await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let isIn: Bool? = state.withLock { state in
          if state.gone.contains(number) { return false }
          guard state.free == 0 else {
            state.free -= 1
            return true
          }
          state.waiting[number] = Waiter(priority: priority, goesOn: goesOn, enter: continuation)
          return nil
        }
        if let isIn { continuation.resume(returning: isIn) }
      }
    } onCancel: {
      giveUp(number)
    }
  }

  private func giveUp(_ number: Int) {
    let waiter = state.withLock { state in
      let waiter = state.waiting.removeValue(forKey: number)
      if waiter == nil { state.gone.insert(number) }
      return waiter
    }
    waiter?.enter.resume(returning: false)
  }

  private func leave() {
    let waiter: Waiter? = state.withLock { state in
      guard let next = state.next else {
        state.free += 1
        return nil
      }
      return state.waiting.removeValue(forKey: next)
    }
    waiter?.enter.resume(returning: true)
  }
}
