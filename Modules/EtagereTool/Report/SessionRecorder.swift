#if Tool
import CacheTelemetry
import Etagere

/// The loads of a session, in groups, for the page that shows them.
final class SessionRecorder: Sendable {
  /// Loads that belong together, such as those of one pass of the demo.
  struct Group: Sendable {
    var name: String
    /// The time from which loads belong to the group.
    var start = Timestamp.distantPast
    var loads: [LoadRecord] = []
  }

  private struct State {
    var groups: [Group] = []
    var observers: [Telemetry] = []
  }

  private let clock: any CacheClock
  private let state = Lock(State())

  /// - Parameter clock: The clock of the managers.
  init(clock: any CacheClock = SystemClock()) { self.clock = clock }

  /// Begins a group. Loads that start from now on belong to it. Loads before the first group are left out.
  func begin(_ name: String) {
    let group = Group(name: name, start: clock.now)
    state.withLock { $0.groups.append(group) }
  }

  /// Returns an observer for a manager.
  func telemetry() -> Telemetry? {
    guard let observer = Telemetry([.records { [weak self] in self?.add($0) }], clock: clock) else { return nil }
    state.withLock { $0.observers.append(observer) }
    return observer
  }

  /// Returns the groups that have loads, in order. Waits until all work of the loads has ended.
  func finish() async -> [Group] {
    for observer in state.withLock({ $0.observers }) { await observer.idle() }
    return state.withLock { $0.groups.filter { !$0.loads.isEmpty } }
  }

  private func add(_ record: LoadRecord) {
    state.withLock { state in
      guard let index = state.groups.lastIndex(where: { $0.start <= record.startedAt }) else { return }
      state.groups[index].loads.append(record)
    }
  }
}
#endif
