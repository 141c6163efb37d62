internal import CacheCore

/// Limits the time that loads wait for the durable store. Longer work continues without the load.
///
/// A slow disk must not delay a load that already has the network's response. One task watches all waiters, and runs only while
/// there are waiters. A timer for each waiter would cost as much as the work that it watches.
final class StoreWriteDeadline: Sendable {
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
    var closers: [CheckedContinuation<Void, Never>] = []
  }

  private enum Progress<Value: Sendable> {
    case running
    case awaited(UnsafeContinuation<Value?, Never>)
    case ended(Value)
    case late
  }

  /// The maximum number of pieces of work that continue without a load. Their data is in memory. At the limit, a load waits until
  /// one of these pieces or its own has ended.
  static let mostLeftBehind = 256

  private let state = Lock(State())
  private let clock: any CacheClock
  private let limit: Duration?

  /// - Parameters:
  ///   - clock: The clock.
  ///   - limit: The time that a load waits, or `nil` to wait until the work has ended.
  init(clock: any CacheClock, limit: Duration?) {
    self.clock = clock
    self.limit = limit
  }

  /// Runs `work` and waits for it until the deadline. The work is completed even if the load ends. A load into the store alone
  /// waits until the work has ended.
  ///
  /// - Parameters:
  ///   - load: The load that waits.
  ///   - times: The factor by which the usual limit is multiplied.
  ///   - work: The work of the store.
  /// - Returns: The result of the work, or `nil` if the work has not ended yet.
  func wait<Value: Sendable>(
    _ load: ResolvedRequest, times: Int = 1, for work: @escaping @Sendable () async -> Value
  ) async -> Value? {
    guard limit != nil, load.store != nil, !load.destination.isStore else { return await work() }
    let progress = Lock(Progress<Value>.running)
    state.withLock { $0.running += 1 }
    begin(on: load.downloader?.preferredExecutor) { [self] in
      let value = await work()
      let (continuation, wasLeft) = progress.withLock { progress -> (UnsafeContinuation<Value?, Never>?, Bool) in
        switch progress {
        case .running: progress = .ended(value)
        case .awaited(let continuation):
          progress = .ended(value)
          return (continuation, false)
        case .late: return (nil, true)
        case .ended: break
        }
        return (nil, false)
      }
      continuation?.resume(returning: value)
      ended(wasLeftBehind: wasLeft)
    }
    if case .ended(let value) = progress.withLock({ $0 }) { return value }
    let number = watch(2 * times) { [self] in
      let (continuation, isLeft) = progress.withLock { progress -> (UnsafeContinuation<Value?, Never>?, Bool) in
        switch progress {
        case .running:
          progress = .late
          return (nil, true)
        case .awaited(let continuation):
          progress = .late
          return (continuation, true)
        case .ended, .late: return (nil, false)
        }
      }
      if !isLeft { state.withLock { $0.leftBehind -= 1 } }
      continuation?.resume(returning: nil)
    }
    defer { state.withLock { _ = $0.waiters.removeValue(forKey: number) } }
    return await withUnsafeContinuation { continuation in
      let known = progress.withLock { progress -> Value?? in
        switch progress {
        case .running, .awaited:
          progress = .awaited(continuation)
          return .none
        case .ended(let value): return .some(value)
        case .late: return .some(nil)
        }
      }
      if let known { continuation.resume(returning: known) }
    }
  }

  /// Starts the work, on the caller's thread if the platform allows it. Most work that a store does at once needs no other
  /// thread.
  private func begin(on executor: (any TaskExecutor)?, _ work: @escaping @Sendable () async -> Void) {
    #if canImport(Darwin)
    Task.detached(executorPreference: executor) { await work() }
    #else
    Task.immediateDetached(executorPreference: executor) { await work() }
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
        // At the limit, the waiter waits for the next check.
        guard state.leftBehind < Self.mostLeftBehind else { continue }
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

  private func ended(wasLeftBehind: Bool) {
    let closers = state.withLock { state in
      state.running -= 1
      if wasLeftBehind { state.leftBehind -= 1 }
      guard state.running == 0 else { return [CheckedContinuation<Void, Never>]() }
      defer { state.closers = [] }
      return state.closers
    }
    for closer in closers { closer.resume() }
  }

  /// Returns when all work has ended. The watch then has no waiters, and stops.
  func idle() async {
    await withCheckedContinuation { continuation in
      let isIdle = state.withLock { state in
        if state.running == 0 { return true }
        state.closers.append(continuation)
        return false
      }
      if isIdle { continuation.resume() }
    }
    state.withLock { state in
      // Work that began since then still needs the watch.
      guard state.running == 0 else { return }
      state.watch?.cancel()
      state.watch = nil
    }
  }
}
