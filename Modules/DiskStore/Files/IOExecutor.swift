internal import CacheCore
internal import Dispatch

/// Runs blocking calls beside the cooperative pool: a bounded number of lanes, each of which does one thing after the other.
///
/// Work on one resource keeps to one lane, so it happens in the order in which it was asked for. One more lane does the upkeep of the whole folder.
final class IOExecutor: Sendable {
  enum Lane { case entry(UInt64), upkeep }

  private struct State {
    var pending = 0
    var isClosed = false
    var closers: [CheckedContinuation<Void, Never>] = []
  }

  private let queues: [DispatchQueue]
  private let upkeep = DispatchQueue(label: "etagere.disk.upkeep", qos: .utility)
  private let state = Lock(State())
  private let path: String

  init(width: Int, path: String) {
    queues = (0..<width).map { DispatchQueue(label: "etagere.disk.\($0)", qos: .userInitiated) }
    self.path = path
  }

  /// Runs `work` in a lane; throws ``CacheError/Code/closed`` after ``close()``. Goes on when the task is cancelled: no half states.
  func run<Value: Sendable>(
    _ lane: Lane, _ work: @escaping @Sendable () throws(CacheError) -> Value
  ) async throws(CacheError) -> Value {
    let result: Result<Value, CacheError> = await withCheckedContinuation { continuation in
      guard enter(whenClosed: false) else {
        return continuation.resume(returning: .failure(CacheError(.closed, reason: "the store is closed", path: path)))
      }
      queue(lane).async { [self] in
        let result = Result(catching: work)
        leave()
        continuation.resume(returning: result)
      }
    }
    return try result.get()
  }

  /// Starts `work`, which nobody waits for but ``close()``.
  ///
  /// - Parameter whenClosed: also after ``close()``: for clearing away what is not needed any more.
  func start(_ lane: Lane, whenClosed: Bool = false, _ work: @escaping @Sendable () -> Void) {
    guard enter(whenClosed: whenClosed) else { return }
    queue(lane).async { [self] in
      work()
      leave()
    }
  }

  /// Does `work` in an entry's lane and waits for it. For the upkeep's own lane alone, which no other lane ever waits for.
  func wait<Value>(_ lane: Lane, _ work: () -> Value) -> Value { queue(lane).sync(execute: work) }

  /// Refuses new work and returns when all that was accepted is done.
  func close() async {
    await withCheckedContinuation { continuation in
      let isIdle = state.withLock { state in
        state.isClosed = true
        if state.pending == 0 { return true }
        state.closers.append(continuation)
        return false
      }
      if isIdle { continuation.resume() }
    }
  }

  var isClosed: Bool { state.withLock { $0.isClosed } }

  /// Which of the lanes it is: entries with the same number share one.
  func number(of lane: UInt64) -> UInt64 { lane % UInt64(queues.count) }

  private func queue(_ lane: Lane) -> DispatchQueue {
    switch lane {
    case .entry(let lane): queues[Int(number(of: lane))]
    case .upkeep: upkeep
    }
  }

  private func enter(whenClosed: Bool) -> Bool {
    state.withLock { state in
      if state.isClosed && !whenClosed { return false }
      state.pending += 1
      return true
    }
  }

  private func leave() {
    let closers = state.withLock { state in
      state.pending -= 1
      guard state.pending == 0 else { return [CheckedContinuation<Void, Never>]() }
      defer { state.closers = [] }
      return state.closers
    }
    for closer in closers { closer.resume() }
  }
}
