internal import CacheCore

/// Limits the time that loads wait for the durable store. Longer work continues without the load.
///
/// A slow disk must not delay a load that already has the network's response, and a disk that hangs must not stop a load that
/// the network can satisfy. One task watches all waiters, and runs only while there are waiters. A timer for each waiter would
/// cost as much as the work that it watches.
final class StoreDeadline: Sendable {
  private struct Waiter {
    var checks: Int
    let release: @Sendable () -> Void
  }

  private struct State {
    var last = 0
    var waiters: [Int: Waiter] = [:]
    var watch: Task<Void, Never>?
    /// The number of pieces of work that have not ended.
    var running = 0
    /// The number of these pieces for which no load waits any more.
    var leftBehind = 0
    var closers: [Int: CheckedContinuation<Bool, Never>] = [:]
  }

  /// The number of pieces of work without a load at which the store counts as full. Each piece holds memory until it ends, so
  /// further work that needs much memory is not begun.
  static let mostLeftBehind = 256

  /// The multiple of the limit after which a store counts as hung. Work that a load would rather wait for is given up then.
  static let hangFactor = 100

  private let state = Lock(State())
  private let clock: any CacheClock
  /// The time that a load waits, or `nil` to wait until the work has ended.
  let limit: Duration?

  init(clock: any CacheClock, limit: Duration?) {
    self.clock = clock
    self.limit = limit
  }

  /// Whether so many pieces of work continue without a load that no more should begin.
  var isFull: Bool { state.withLock { $0.leftBehind >= Self.mostLeftBehind } }

  /// Runs `work` and waits for it until the deadline. A write is completed even if the load ends. A load into the store alone
  /// waits ``hangFactor`` times as long for it.
  ///
  /// - Parameters:
  ///   - load: The load that waits.
  ///   - times: The factor by which the usual limit is multiplied.
  ///   - isRead: Whether the work only reads. A cancellation of the load's task then ends the wait at once and cancels the work.
  ///   - work: The work of the store.
  /// - Returns: The result of the work, or `nil` if the work has not ended yet.
  func wait<Value: Sendable>(
    _ load: ResolvedRequest, times: Int = 1, isRead: Bool = false, for work: @escaping @Sendable () async -> Value
  ) async -> Value? {
    guard limit != nil, load.store != nil else { return await work() }
    let call = StoreCall<Value>()
    state.withLock { $0.running += 1 }
    let task = begin(on: load.downloader?.preferredExecutor) { [self] in
      let value = await work()
      ended(call.end(with: value))
    }
    if let value = call.value { return value }
    let times = load.destination.isStore && !isRead ? Self.hangFactor : times
    let number = watch(2 * times) { [self] in
      if !call.leave() { state.withLock { $0.leftBehind -= 1 } }
    }
    guard isRead else { return await result(of: call, number) }
    return await withTaskCancellationHandler {
      await result(of: call, number)
    } onCancel: {
      task.cancel()
      call.cancel(number)
    }
  }

  private func result<Value: Sendable>(of call: StoreCall<Value>, _ number: Int) async -> Value? {
    let value = await call.result()
    // The watch has removed a late waiter. It still counts the work of a cancelled one.
    if value != nil { state.withLock { _ = $0.waiters.removeValue(forKey: number) } }
    return value
  }

  /// Starts the work, on the caller's thread if the platform allows it. Most work that a store does at once needs no other
  /// thread.
  private func begin(
    on executor: (any TaskExecutor)?, _ work: @escaping @Sendable () async -> Void
  ) -> Task<Void, Never> {
    #if canImport(Darwin)
    Task.detached(executorPreference: executor, priority: Task.currentPriority) { await work() }
    #else
    Task.immediateDetached(priority: Task.currentPriority, executorPreference: executor) { await work() }
    #endif
  }

  // MARK: Watching

  /// - Parameters:
  ///   - checks: The number of checks after which the watch releases the waiter.
  ///   - release: The closure that releases the waiter. When it is called, its work is already counted in `leftBehind`.
  private func watch(_ checks: Int, _ release: @escaping @Sendable () -> Void) -> Int {
    state.withLock { state in
      state.last += 1
      state.waiters[state.last] = Waiter(checks: checks, release: release)
      if state.watch == nil, let limit { state.watch = Task.detached { [self] in await releaseLateWaiters(every: limit / 2) } }
      return state.last
    }
  }

  private func releaseLateWaiters(every interval: Duration) async {
    repeat {
      guard (try? await clock.sleep(for: interval)) != nil else { return }
    } while releaseLate()
  }

  /// Releases the waiters whose time is over.
  ///
  /// - Returns: Whether any waiter is left to watch.
  private func releaseLate() -> Bool {
    let (late, continues) = state.withLock { state in
      var late: [@Sendable () -> Void] = []
      // Another task may be watching by now.
      if Task.isCancelled { return (late, false) }
      for (number, waiter) in state.waiters {
        guard waiter.checks <= 1 else {
          state.waiters[number]?.checks -= 1
          continue
        }
        state.leftBehind += 1
        late.append(waiter.release)
        state.waiters[number] = nil
      }
      if state.waiters.isEmpty { state.watch = nil }
      return (late, state.watch != nil)
    }
    for release in late { release() }
    return continues
  }

  // MARK: The end

  private func ended(_ waiter: StoreCallWaiter) {
    let closers = state.withLock { state in
      state.running -= 1
      switch waiter {
      case .waiting: break
      case .cancelled(let number): state.waiters[number] = nil
      case .left: state.leftBehind -= 1
      }
      guard state.running == 0 else { return [CheckedContinuation<Bool, Never>]() }
      defer { state.closers = [:] }
      return Array(state.closers.values)
    }
    for closer in closers { closer.resume(returning: true) }
  }

  /// Returns when all work has ended, at the latest after ``hangFactor`` times the limit. The watch then has no waiters, and
  /// stops.
  ///
  /// - Returns: Whether all work has ended.
  @discardableResult
  func idle() async -> Bool {
    let number = state.withLock { state in
      state.last += 1
      return state.last
    }
    var timer: Task<Void, Never>?
    let isIdle = await withCheckedContinuation { continuation in
      let isIdle = state.withLock { state in
        if state.running == 0 { return true }
        state.closers[number] = continuation
        return false
      }
      if isIdle { return continuation.resume(returning: true) }
      guard let limit else { return }
      timer = Task.detached { [self] in
        guard (try? await clock.sleep(for: limit * Self.hangFactor)) != nil else { return }
        state.withLock { $0.closers.removeValue(forKey: number) }?.resume(returning: false)
      }
    }
    timer?.cancel()
    let watch = state.withLock { state in
      // Work that began since then still needs the watch.
      state.running == 0 ? state.watch.take() : nil
    }
    watch?.cancel()
    return isIdle
  }
}

/// The load that waited for a call of the store when the call ended.
private enum StoreCallWaiter {
  case waiting
  /// The load was cancelled. The watch still has this waiter.
  case cancelled(Int)
  /// The time of the load was over.
  case left
}

/// One call of the store: its result, and the load that waits for it.
private final class StoreCall<Value: Sendable>: Sendable {
  private enum Progress {
    case running
    case awaited(UnsafeContinuation<Value?, Never>)
    case ended(Value)
    case cancelled(waiter: Int)
    case left
  }

  private let progress = Lock(Progress.running)

  /// The result, or `nil` if the call has not ended.
  var value: Value? { if case .ended(let value) = progress.withLock({ $0 }) { value } else { nil } }

  /// Waits for the result. Returns `nil` if the load leaves or is cancelled first.
  func result() async -> Value? {
    await withUnsafeContinuation { continuation in
      let known = progress.withLock { progress -> Value?? in
        switch progress {
        case .running, .awaited:
          progress = .awaited(continuation)
          return .none
        case .ended(let value): return .some(value)
        case .cancelled, .left: return .some(nil)
        }
      }
      if let known { continuation.resume(returning: known) }
    }
  }

  func end(with value: Value) -> StoreCallWaiter {
    let former = progress.withLock { progress in
      defer { progress = .ended(value) }
      return progress
    }
    switch former {
    case .awaited(let continuation):
      continuation.resume(returning: value)
      return .waiting
    case .cancelled(let waiter): return .cancelled(waiter)
    case .left: return .left
    case .running, .ended: return .waiting
    }
  }

  /// Ends the wait, because its time is over. Returns `false` if the call has ended.
  func leave() -> Bool {
    let (continuation, isLeft) = progress.withLock { progress -> (UnsafeContinuation<Value?, Never>?, Bool) in
      var waiting: UnsafeContinuation<Value?, Never>?
      switch progress {
      case .ended: return (nil, false)
      case .awaited(let continuation): waiting = continuation
      case .running, .cancelled, .left: break
      }
      progress = .left
      return (waiting, true)
    }
    continuation?.resume(returning: nil)
    return isLeft
  }

  /// Ends the wait, because the task of the load was cancelled.
  func cancel(_ waiter: Int) {
    let continuation = progress.withLock { progress -> UnsafeContinuation<Value?, Never>? in
      switch progress {
      case .running:
        progress = .cancelled(waiter: waiter)
        return nil
      case .awaited(let continuation):
        progress = .cancelled(waiter: waiter)
        return continuation
      case .ended, .cancelled, .left: return nil
      }
    }
    continuation?.resume(returning: nil)
  }
}

/// The limits and the order of a manager's calls of the durable store.
final class StoreCoordination: Sendable {
  let writes: StoreDeadline
  let reads: StoreDeadline
  let order = CommitOrder()

  init(_ configuration: ResourceManager.Configuration) {
    writes = StoreDeadline(clock: configuration.clock, limit: configuration.storeWriteTimeout)
    reads = StoreDeadline(clock: configuration.clock, limit: configuration.storeReadTimeout)
  }
}

extension ResolvedRequest {
  var writeDeadline: StoreDeadline { settings.stores.writes }
  var readDeadline: StoreDeadline { settings.stores.reads }
}
