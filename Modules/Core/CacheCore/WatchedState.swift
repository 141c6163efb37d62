/// State with a lock on whose changes tasks can wait without polling.
package final class WatchedState<State: Sendable>: Sendable {
  private struct Waiter: Sendable {
    let condition: @Sendable (State) -> Bool
    let continuation: Resumption<Void>
  }

  private struct Guarded: Sendable {
    var state: State
    var waiters: [Int: Waiter] = [:]
    var nextID = 0
    var isClosed = false
  }

  private let lock: Lock<Guarded>

  package init(_ state: State) { lock = Lock(Guarded(state: state)) }

  package func read<R: Sendable>(_ body: (State) -> R) -> R { lock.withLock { body($0.state) } }

  /// Changes the state and wakes the waiters whose condition has become true.
  @discardableResult
  package func update<R: Sendable>(_ body: (inout State) -> R) -> R {
    let (result, woken) = lock.withLock { guarded -> (R, [Resumption<Void>]) in
      let result = body(&guarded.state)
      guard !guarded.waiters.isEmpty else { return (result, []) }
      let ready = guarded.waiters.filter { $0.value.condition(guarded.state) }
      for id in ready.keys { guarded.waiters[id] = nil }
      return (result, ready.values.map(\.continuation))
    }
    for continuation in woken { continuation.resume() }
    return result
  }

  /// Returns when the condition is true, the task is cancelled, or `close()` is called. The condition runs under the
  /// lock.
  package func wait(until condition: @escaping @Sendable (State) -> Bool) async {
    let id = lock.withLock { guarded in
      defer { guarded.nextID += 1 }
      return guarded.nextID
    }
    await withTaskCancellationHandler {
      await withResumption { (continuation: Resumption<Void>) in
        let isOver = lock.withLock { guarded in
          // An earlier cancellation found no waiter to wake. A concurrent one waits for the lock.
          if Task.isCancelled || guarded.isClosed || condition(guarded.state) { return true }
          guarded.waiters[id] = Waiter(condition: condition, continuation: continuation)
          return false
        }
        if isOver { continuation.resume() }
      }
    } onCancel: {
      lock.withLock { $0.waiters.removeValue(forKey: id) }?.continuation.resume()
    }
  }

  /// Wakes all current and later waiters.
  package func close() {
    let woken = lock.withLock { guarded in
      guarded.isClosed = true
      defer { guarded.waiters = [:] }
      return guarded.waiters.values.map(\.continuation)
    }
    for continuation in woken { continuation.resume() }
  }
}
