#if Tool
import CacheTelemetry
import Etagere

/// The loads of a session, in groups, for the page that shows them.
final class SessionRecorder: Sendable {
  /// Loads that belong together, such as those of one pass of the demo.
  struct Group: Sendable {
    var name: String
    var loads: [LoadRecord] = []
  }

  private let state = Lock<[Group]>([])

  /// The groups that have loads, in order.
  var groups: [Group] { state.withLock { $0.filter { !$0.loads.isEmpty } } }

  /// Begins a group. Loads that end from now on belong to it. Loads before the first group are left out.
  func begin(_ name: String) { state.withLock { $0.append(Group(name: name)) } }

  func add(_ record: LoadRecord) {
    state.withLock { groups in
      if !groups.isEmpty { groups[groups.count - 1].loads.append(record) }
    }
  }

  /// An observer of managers that use this clock.
  func telemetry(clock: any CacheClock = SystemClock()) -> Telemetry? {
    Telemetry(.records { [self] in add($0) }, clock: clock)
  }
}
#endif
