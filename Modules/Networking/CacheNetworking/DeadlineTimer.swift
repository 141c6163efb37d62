internal import CacheCore

/// The timer for all deadlines of a downloader. It uses one sleeping task, regardless of the number of deadlines.
///
/// It has the clock's precision. The platform's own time-outs have whole seconds on Linux. Adding, removing and firing a deadline
/// cost O(log n).
final class DeadlineTimer: Sendable {
  /// The action of a deadline. It returns the time of its next call, or `nil` if there is none.
  typealias Action = @Sendable (_ now: Duration) -> Duration?

  /// A registered deadline. Releasing it removes the deadline.
  final class ScheduledDeadline: Sendable {
    private let watch: DeadlineTimer
    private let number: Int

    init(_ watch: DeadlineTimer, _ number: Int) { (self.watch, self.number) = (watch, number) }

    deinit { watch.remove(number) }
  }

  private struct State {
    var actions: [Int: Action] = [:]
    /// The times of the next calls, without the actions that are being called.
    var dues = IndexedHeap<Int, Duration>()
    var nextNumber = 0
    var wakesAt: Duration?
    var sleeper: Task<Void, Never>?
  }

  private let clock: any CacheClock
  private let state = Lock(State())

  init(clock: any CacheClock) { self.clock = clock }

  deinit { state.withLock { $0.sleeper }?.cancel() }

  /// Calls `action` at `due` on an unspecified thread, and again until it returns `nil` or the deadline is released.
  func add(due: Duration, action: @escaping Action) -> ScheduledDeadline {
    let number = state.withLock { state in
      state.nextNumber += 1
      state.actions[state.nextNumber] = action
      state.dues.set(state.nextNumber, due)
      return state.nextNumber
    }
    sleep(until: due)
    return ScheduledDeadline(self, number)
  }

  private func remove(_ number: Int) {
    let removed = state.withLock { state in
      state.dues.remove(number)
      return state.actions.removeValue(forKey: number)
    }
    // The action may own an object whose `deinit` calls this timer.
    withExtendedLifetime(removed) {}
  }

  /// Schedules a wake-up at `due`, unless an earlier one is scheduled. A sleeper that is no longer needed is not cancelled.
  private func sleep(until due: Duration) {
    let old: Task<Void, Never>? = state.withLock { state in
      if let wakesAt = state.wakesAt, wakesAt <= due { return nil }
      defer {
        state.wakesAt = due
        let clock = clock
        // Detached: the task serves all callers, so it must not inherit the priority and task-local values of one.
        state.sleeper = Task.detached { [weak self] in
          do {
            try await clock.sleep(for: max(due - clock.uptime, .zero))
            self?.wake(due)
          } catch {}
        }
      }
      return state.sleeper
    }
    old?.cancel()
  }

  private func wake(_ time: Duration) {
    let now = clock.uptime
    let calls: [(number: Int, action: Action)]? = state.withLock { state in
      // A later sleeper has replaced this one.
      guard state.wakesAt == time else { return nil }
      (state.wakesAt, state.sleeper) = (nil, nil)
      var calls: [(number: Int, action: Action)] = []
      while let first = state.dues.first, first.rank <= now {
        state.dues.remove(first.member)
        if let action = state.actions[first.member] { calls.append((first.member, action)) }
      }
      return calls
    }
    guard let calls else { return }
    for (number, action) in calls {
      let next = action(now)
      let removed: Action? = state.withLock { state in
        guard let next else { return state.actions.removeValue(forKey: number) }
        // The deadline may have been released meanwhile.
        if state.actions[number] != nil { state.dues.set(number, next) }
        return nil
      }
      withExtendedLifetime(removed) {}
    }
    if let earliest = state.withLock({ $0.dues.first?.rank }) { sleep(until: earliest) }
  }
}

/// The idle time of a transfer, without the time during which the process did not run.
///
/// The system's clock continues while an app is suspended. The first check after that is late, and its delay does not count.
/// There are four checks for each limit, so at most a quarter of it and one second of a suspension count.
struct Idleness {
  /// The longest delay that is taken for that of a busy machine.
  private static let usualDelay = Duration.seconds(1)

  /// The maximum time without received or sent bytes.
  let limit: Duration
  /// The time at which bytes were last received or sent, or `nil` while the platform waits for a network.
  var lastActivity: Duration?
  private(set) var nextCheck: Duration

  init(limit: Duration, at now: Duration) {
    (self.limit, lastActivity, nextCheck) = (limit, now, now + limit / 4)
  }

  /// Returns the time of the next check, or `nil` if the transfer has been idle for too long.
  mutating func check(at now: Duration) -> Duration? {
    let delay = now - nextCheck
    if delay > Self.usualDelay, let last = lastActivity { lastActivity = min(last + delay, now) }
    let end = (lastActivity ?? now) + limit
    guard now < end else { return nil }
    nextCheck = min(end, now + limit / 4)
    return nextCheck
  }

  /// Whether the transfer has not been idle for too long. `false` while the platform waits for a network.
  func isBelowLimit(at now: Duration) -> Bool {
    var copy = self
    return lastActivity != nil && copy.check(at: now) != nil
  }
}
