public import CacheCore

/// A clock that advances only when a test moves it. Tests do not wait, and every age and deadline is exact.
///
/// ```swift
/// let clock = ManualClock()
/// async let late: Void = clock.sleep(for: .seconds(60))
/// await clock.advance(pastSleepOf: .seconds(60))  // waits until a task sleeps for a minute, then advances by a minute
/// try await late
/// ```
public final class ManualClock: CacheClock {
  private struct Sleeper: Sendable {
    let id: Int
    let deadline: Duration
    let continuation: Resumption<Bool>
  }

  private struct State: Sendable {
    var wall: Timestamp
    var uptime = Duration.zero
    var nextID = 0
    var sleepers: [Sleeper] = []

    /// Returns the sleepers that have ended, in the order of their deadlines.
    mutating func advance(by duration: Duration) -> [Sleeper] {
      wall = wall + duration
      uptime += duration
      let due = sleepers.filter { $0.deadline <= uptime }.sorted { ($0.deadline, $0.id) < ($1.deadline, $1.id) }
      sleepers.removeAll { $0.deadline <= uptime }
      return due
    }
  }

  private let state: WatchedState<State>

  /// Creates a clock with the given wall time, by default 2026-01-01 00:00:00 UTC.
  public init(now: Timestamp = Timestamp(seconds: 1_767_225_600)) { state = WatchedState(State(wall: now)) }

  /// The wall time.
  public var now: Timestamp { state.read { $0.wall } }

  /// The total duration by which the clock was advanced.
  public var uptime: Duration { state.read { $0.uptime } }

  /// Advances both readings and wakes all sleepers whose deadline has passed, in the order of their deadlines.
  ///
  /// A task that begins to sleep after this call sleeps from the new time on. Use ``advance(pastSleepOf:)`` if the sleep may not
  /// have begun yet.
  public func advance(by duration: Duration) { wake(state.update { $0.advance(by: duration) }) }

  /// Waits until a task sleeps that ends in exactly `duration`, and then advances the clock by `duration`.
  ///
  /// The test names the time that it knows, such as the timeout of a load or the delay of a scripted response. It needs not know
  /// how many other tasks sleep. If the clock was advanced during the sleep, name the rest of it.
  ///
  /// ```swift
  /// let clock = ManualClock()
  /// let load = Task { try await manager.load(url, options: RequestOptions { ($0.clock, $0.timeout) = (clock, .seconds(5)) }) }
  /// await clock.advance(pastSleepOf: .seconds(5))  // the load times out
  /// ```
  ///
  /// Returns without an effect if the calling task is cancelled, for example by the time limit of a test.
  public func advance(pastSleepOf duration: Duration) async {
    let isPending: @Sendable (State) -> Bool = { state in
      state.sleepers.contains { $0.deadline == state.uptime + duration }
    }
    while !Task.isCancelled {
      await state.wait(until: isPending)
      // The sleep may have ended since.
      let woken = state.update { isPending($0) ? $0.advance(by: duration) : nil }
      if let woken { return wake(woken) }
    }
  }

  private func wake(_ sleepers: [Sleeper]) {
    for sleeper in sleepers { sleeper.continuation.resume(returning: true) }
  }

  /// Sets only the wall time, like a change of the system clock. Sleepers are not affected.
  public func setNow(_ now: Timestamp) { state.update { $0.wall = now } }

  /// Returns when at least `count` sleeps are pending, or when the calling task is cancelled.
  ///
  /// A load may sleep itself, for its timeout for example. To wait for a sleep of a known length, use
  /// ``advance(pastSleepOf:)``.
  public func sleepers(_ count: Int) async { await state.wait { $0.sleepers.count >= count } }

  /// The number of pending sleeps.
  public var pendingSleeps: Int { state.read { $0.sleepers.count } }

  /// Sleeps until the clock has advanced by `duration`. Returns immediately for zero or less.
  public func sleep(for duration: Duration) async throws(CancellationError) {
    let id = state.update { state in
      state.nextID += 1
      return state.nextID
    }
    let elapsed = await withTaskCancellationHandler {
      await withResumption { continuation in enter(id, duration, continuation) }
    } onCancel: {
      cancel(id)
    }
    guard elapsed else { throw CancellationError() }
  }

  private func enter(_ id: Int, _ duration: Duration, _ continuation: Resumption<Bool>) {
    // `nil` if the sleep is pending.
    let hasElapsed: Bool? = state.update { state in
      // An earlier cancellation found no sleeper to wake. A concurrent one waits for the lock.
      if Task.isCancelled { return false }
      guard duration > .zero else { return true }
      state.sleepers.append(Sleeper(id: id, deadline: state.uptime + duration, continuation: continuation))
      return nil
    }
    if let hasElapsed { continuation.resume(returning: hasElapsed) }
  }

  private func cancel(_ id: Int) {
    let sleeper: Sleeper? = state.update { state in
      state.sleepers.firstIndex { $0.id == id }.map { state.sleepers.remove(at: $0) }
    }
    sleeper?.continuation.resume(returning: false)
  }
}
