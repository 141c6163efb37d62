package import CacheCore
internal import Dispatch
internal import Synchronization

/// A small thread pool for calls that block, which must not run on the cooperative pool. A cancelled caller does not wait for its
/// call.
package final class BlockingThreadPool: Sendable {
  /// The pool for file calls. At most four of them block at once.
  package static let files = BlockingThreadPool(count: 4, label: "etagere.files")

  private struct State {
    var running = 0
    /// The waiting calls, by their numbers.
    var jobs: [UInt64: @Sendable () -> Void] = [:]
    /// The numbers of the waiting calls, in the order of arrival. Thousands of loads may wait for a file.
    var order = IndexedHeap<UInt64, UInt64>()

    mutating func remove(_ id: UInt64) -> (@Sendable () -> Void)? {
      order.remove(id)
      return jobs.removeValue(forKey: id)
    }
  }

  private let count: Int
  private let queue: DispatchQueue
  private let state = Lock(State())
  private let ids = Atomic<UInt64>(0)

  init(count: Int, label: String) {
    self.count = count
    queue = DispatchQueue(label: label, qos: .utility, attributes: .concurrent)
  }

  /// The number of calls that wait for a thread.
  var waiting: Int { state.withLock { $0.jobs.count } }

  /// Returns the result of `work`.
  ///
  /// - Throws: `CacheError.cancelled` at once after a cancellation. Then `work` is not called, or its result is dropped.
  package func run<Value: Sendable>(_ work: @escaping @Sendable () -> Value) async throws(CacheError) -> Value {
    let id = ids.wrappingAdd(1, ordering: .relaxed).newValue
    let slot = ResultSlot<Value>()
    let value = await withTaskCancellationHandler {
      await withResumption { resumption in
        slot.wait(resumption)
        if Task.isCancelled { return slot.arrive(nil) }
        enter(id) { slot.arrive(work()) }
      }
    } onCancel: {
      // What the call retains is released outside the lock.
      _ = state.withLock { $0.remove(id) }
      slot.arrive(nil)
    }
    guard let value else { throw .cancelled }
    return value
  }

  private func enter(_ id: UInt64, _ job: @escaping @Sendable () -> Void) {
    let starts = state.withLock { state in
      state.jobs[id] = job
      state.order.set(id, id)
      guard state.running < count else { return false }
      state.running += 1
      return true
    }
    if starts { queue.async { self.work() } }
  }

  /// The loop of one thread, which runs jobs until there are none.
  private func work() {
    while let job = take() { job() }
  }

  private func take() -> (@Sendable () -> Void)? {
    state.withLock { state in
      if let id = state.order.first?.member { return state.remove(id) }
      state.running -= 1
      return nil
    }
  }
}

/// A slot for the waiter of one result, which is resumed once. The value is `nil` after a cancellation.
private final class ResultSlot<Value: Sendable>: Sendable {
  private let waiter = Lock<Resumption<Value?>?>(nil)

  func wait(_ resumption: Resumption<Value?>) { waiter.withLock { $0 = resumption } }

  func arrive(_ value: Value?) { waiter.withLock { $0.take() }?.resume(returning: value) }
}
