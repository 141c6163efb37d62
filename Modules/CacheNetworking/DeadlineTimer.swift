internal import CacheCore

/// Calls at given times, for all transfers of a downloader: one sleeping task, however many wait.
///
/// Exact to the clock, while the platform's own time-outs are in whole seconds on Linux. Adding, removing and each call cost
/// O(log n).
final class DeadlineTimer: Sendable {
  /// Told the time; returns when to call again, or nil.
  typealias Action = @Sendable (_ now: Duration) -> Duration?

  /// One appointment; letting go of it takes it out.
  final class ScheduledDeadline: Sendable {
    private let watch: DeadlineTimer
    private let number: Int

    init(_ watch: DeadlineTimer, _ number: Int) { (self.watch, self.number) = (watch, number) }

    deinit { watch.remove(number) }
  }

  private struct State {
    var actions: [Int: Action] = [:]
    /// When to call them; those that are called right now are not in it.
    var dues = IndexedHeap<Int, Duration>()
    var nextNumber = 0
    var wakesAt: Duration?
    var sleeper: Task<Void, Never>?
  }

  private let clock: any CacheClock
  private let state = Lock(State())

  init(clock: any CacheClock) { self.clock = clock }

  deinit { state.withLock { $0.sleeper }?.cancel() }

  /// Calls `action` once `due` has come, on no particular thread, until it returns nil or the appointment is let go of.
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
    // What the action holds may have a `deinit` that comes back here.
    withExtendedLifetime(removed) {}
  }

  /// Wakes at `due`, unless something earlier wakes it anyway. A sleeper whose time nobody needs any more is left to sleep.
  private func sleep(until due: Duration) {
    let old: Task<Void, Never>? = state.withLock { state in
      if let wakesAt = state.wakesAt, wakesAt <= due { return nil }
      defer {
        state.wakesAt = due
        let clock = clock
        // Detached: it belongs to no one caller, whose priority and task-local values it should not carry along.
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
      // A later sleeper has taken over.
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
        // Unless it was let go of meanwhile.
        if state.actions[number] != nil { state.dues.set(number, next) }
        return nil
      }
      withExtendedLifetime(removed) {}
    }
    if let earliest = state.withLock({ $0.dues.first?.rank }) { sleep(until: earliest) }
  }
}
