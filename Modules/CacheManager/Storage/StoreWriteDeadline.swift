internal import CacheCore

/// Lets loads go on when the durable store keeps them waiting: what they wait for then comes to its end behind their backs.
///
/// A slow disk must not make a load slow that the network has answered. One task looks after all who wait, and only while
/// somebody does: a timer for each would cost as much as what it watches.
final class StoreWriteDeadline: Sendable {
  private struct Waiter {
    var looks: Int
    let release: @Sendable () -> Void
  }

  private struct State {
    var last = 0
    var waiters: [Int: Waiter] = [:]
    var watch: Task<Void, Never>?
    /// Pieces of work that have not come to their end.
    var running = 0
    /// Those of them that nobody waits for any more.
    var leftBehind = 0
    var closers: [CheckedContinuation<Void, Never>] = []
  }

  private enum Progress<Value: Sendable> {
    case running
    case awaited(UnsafeContinuation<Value?, Never>)
    case ended(Value)
    case late
  }

  /// How many pieces of work are left behind at most. What they store lies in memory: when that is much, loads wait until one of
  /// them, or their own, is done.
  static let mostLeftBehind = 256

  private let state = Lock(State())
  private let clock: any CacheClock
  private let limit: Duration?

  /// - Parameters:
  ///   - clock: time.
  ///   - limit: how long a load waits; nil: as long as it takes.
  init(clock: any CacheClock, limit: Duration?) {
    self.clock = clock
    self.limit = limit
  }

  /// Does `work`, which is carried through whatever happens to the load, but waits for it only so long. A load that is for the
  /// store alone waits to the end.
  ///
  /// - Parameters:
  ///   - load: who waits.
  ///   - times: how often the usual time.
  ///   - work: what the store is to do.
  /// - Returns: nil: it is not done yet.
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

  /// Begins on the caller's thread where that is possible: most of what a store does at once needs no other.
  private func begin(on executor: (any TaskExecutor)?, _ work: @escaping @Sendable () async -> Void) {
    #if canImport(Darwin)
    Task.detached(executorPreference: executor) { await work() }
    #else
    Task.immediateDetached(executorPreference: executor) { await work() }
    #endif
  }

  // MARK: Watching

  /// - Parameters:
  ///   - looks: how often the watch looks before it releases.
  ///   - release: is counted among those left behind when it is called.
  private func watch(_ looks: Int, _ release: @escaping @Sendable () -> Void) -> Int {
    state.withLock { state in
      state.last += 1
      state.waiters[state.last] = Waiter(looks: looks, release: release)
      if state.watch == nil, let limit { state.watch = Task.detached { [self] in await keepWatch(every: limit / 2) } }
      return state.last
    }
  }

  private func keepWatch(every interval: Duration) async {
    repeat {
      guard (try? await clock.sleep(for: interval)) != nil else { return }
    } while look()
  }

  /// - Returns: whether there is somebody to look after.
  private func look() -> Bool {
    let (late, goesOn) = state.withLock { state in
      var late: [@Sendable () -> Void] = []
      // Another one may watch by now.
      if Task.isCancelled { return (late, false) }
      for (number, waiter) in state.waiters {
        guard waiter.looks <= 1 else {
          state.waiters[number]?.looks -= 1
          continue
        }
        // Where as many are left behind as may be, it waits for the next look.
        guard state.leftBehind < Self.mostLeftBehind else { continue }
        state.leftBehind += 1
        late.append(waiter.release)
        state.waiters[number] = nil
      }
      if state.waiters.isEmpty { state.watch = nil }
      return (late, state.watch != nil)
    }
    for release in late { release() }
    return goesOn
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

  /// Returns when everything that was begun is done. Then there is nobody to look after.
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
      // Who has begun since then is looked after.
      guard state.running == 0 else { return }
      state.watch?.cancel()
      state.watch = nil
    }
  }
}
