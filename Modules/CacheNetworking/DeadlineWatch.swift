internal import CacheCore

/// Calls at given times, for all transfers of a downloader: one sleeping task, however many wait.
///
/// Exact to the clock, while the platform's own time-outs are in whole seconds on Linux. Transfers come and go far more often than a time passes, so adding
/// and removing cost O(1); looking for what is due costs O(n), each time that something may be.
final class DeadlineWatch: Sendable {
  /// Told the time; returns when to call again, or nil.
  typealias Action = @Sendable (_ now: Duration) -> Duration?

  /// One appointment; letting go of it takes it out.
  final class Appointment: Sendable {
    private let watch: DeadlineWatch
    private let number: Int

    init(_ watch: DeadlineWatch, _ number: Int) { (self.watch, self.number) = (watch, number) }

    deinit { watch.remove(number) }
  }

  private struct Entry {
    var due: Duration
    var action: Action
  }

  private struct State {
    var entries: [Int: Entry] = [:]
    var nextNumber = 0
    var wakesAt: Duration?
    var sleeper: Task<Void, Never>?
  }

  private let clock: any CacheClock
  private let state = Lock(State())

  init(clock: any CacheClock) { self.clock = clock }

  deinit { state.withLock { $0.sleeper }?.cancel() }

  /// Calls `action` once `due` has come, on no particular thread, until it returns nil or the appointment is let go of.
  func add(due: Duration, action: @escaping Action) -> Appointment {
    let number = state.withLock { state in
      state.nextNumber += 1
      state.entries[state.nextNumber] = Entry(due: due, action: action)
      return state.nextNumber
    }
    sleep(until: due)
    return Appointment(self, number)
  }

  private func remove(_ number: Int) {
    let removed = state.withLock { $0.entries.removeValue(forKey: number) }
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

  private func wake(_ due: Duration) {
    let now = clock.uptime
    let dueEntries: [(number: Int, action: Action)]? = state.withLock { state in
      // A later sleeper has taken over.
      guard state.wakesAt == due else { return nil }
      (state.wakesAt, state.sleeper) = (nil, nil)
      return state.entries.filter { $0.value.due <= now }.map { ($0.key, $0.value.action) }
    }
    guard let dueEntries else { return }
    for (number, action) in dueEntries {
      let next = action(now)
      let removed: Entry? = state.withLock { state in
        guard let next else { return state.entries.removeValue(forKey: number) }
        state.entries[number]?.due = next
        return nil
      }
      withExtendedLifetime(removed) {}
    }
    let earliest = state.withLock { $0.entries.values.map(\.due).min() }
    if let earliest { sleep(until: earliest) }
  }
}
