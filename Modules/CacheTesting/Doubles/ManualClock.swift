public import CacheCore

/// A clock that advances only when a test moves it. Tests do not wait, and every age and deadline is exact.
///
/// ```swift
/// let clock = ManualClock()
/// async let late: Void = clock.sleep(for: .seconds(60))
/// await clock.sleepers(1)          // returns when a task sleeps
/// clock.advance(by: .seconds(60))  // wakes sleepers in the order of their deadlines
/// try await late
/// ```
public final class ManualClock: CacheClock {
  private struct Sleeper {
    let id: Int
    let deadline: Duration
    let continuation: CheckedContinuation<Bool, Never>
  }

  private struct Watcher {
    let count: Int
    let continuation: CheckedContinuation<Void, Never>
  }

  private struct State {
    var wall: Timestamp
    var uptime = Duration.zero
    var nextID = 0
    var sleepers: [Sleeper] = []
    var cancelledEarly: Set<Int> = []
    var watchers: [Watcher] = []
  }

  private let state: Lock<State>

  /// Creates a clock with the given wall time, by default 2026-01-01 00:00:00 UTC.
  public init(now: Timestamp = Timestamp(seconds: 1_767_225_600)) { state = Lock(State(wall: now)) }

  /// The wall time.
  public var now: Timestamp { state.withLock { $0.wall } }

  /// The total duration by which the clock was advanced.
  public var uptime: Duration { state.withLock { $0.uptime } }

  /// Advances both readings and wakes all sleepers whose deadline has passed.
  public func advance(by duration: Duration) {
    let woken: [Sleeper] = state.withLock { state in
      state.wall = state.wall + duration
      state.uptime += duration
      let due = state.sleepers.filter { $0.deadline <= state.uptime }.sorted { ($0.deadline, $0.id) < ($1.deadline, $1.id) }
      state.sleepers.removeAll { $0.deadline <= state.uptime }
      return due
    }
    for sleeper in woken { sleeper.continuation.resume(returning: true) }
  }

  /// Sets only the wall time, like a change of the system clock. Sleepers are not affected.
  public func setNow(_ now: Timestamp) { state.withLock { $0.wall = now } }

  /// Returns when at least `count` sleeps are pending.
  public func sleepers(_ count: Int) async {
    await withCheckedContinuation { continuation in
      let ready = state.withLock { state in
        if state.sleepers.count >= count { return true }
        state.watchers.append(Watcher(count: count, continuation: continuation))
        return false
      }
      if ready { continuation.resume() }
    }
  }

  /// The number of pending sleeps.
  public var pendingSleeps: Int { state.withLock { $0.sleepers.count } }

  /// Sleeps until the clock has advanced by `duration`. Returns immediately for zero or less.
  public func sleep(for duration: Duration) async throws(CancellationError) {
    let id = state.withLock { state in
      state.nextID += 1
      return state.nextID
    }
    let elapsed = await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in enter(id, duration, continuation) }
    } onCancel: {
      cancel(id)
    }
    guard elapsed else { throw CancellationError() }
  }

  private func enter(_ id: Int, _ duration: Duration, _ continuation: CheckedContinuation<Bool, Never>) {
    enum Outcome { case elapsed, cancelled, sleeping([Watcher]) }
    let outcome: Outcome = state.withLock { state in
      if state.cancelledEarly.remove(id) != nil { return .cancelled }
      guard duration > .zero else { return .elapsed }
      state.sleepers.append(Sleeper(id: id, deadline: state.uptime + duration, continuation: continuation))
      let count = state.sleepers.count
      let content = state.watchers.filter { $0.count <= count }
      state.watchers.removeAll { $0.count <= count }
      return .sleeping(content)
    }
    switch outcome {
    case .elapsed: continuation.resume(returning: true)
    case .cancelled: continuation.resume(returning: false)
    case .sleeping(let content): for watcher in content { watcher.continuation.resume() }
    }
  }

  private func cancel(_ id: Int) {
    let sleeper: Sleeper? = state.withLock { state in
      if let index = state.sleepers.firstIndex(where: { $0.id == id }) { return state.sleepers.remove(at: index) }
      state.cancelledEarly.insert(id)
      return nil
    }
    sleeper?.continuation.resume(returning: false)
  }
}
