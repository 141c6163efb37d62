#if Demo
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

  private final class Groups: Sendable {
    let all = Lock<[Group]>([])

    func add(_ record: LoadRecord) {
      all.withLock { groups in
        guard let index = groups.lastIndex(where: { $0.start <= record.startedAt }) else { return }
        groups[index].loads.append(record)
      }
    }
  }

  /// The observer of all managers of the session.
  let telemetry: Telemetry?
  private let clock: any CacheClock
  private let groups = Groups()

  /// - Parameter clock: The clock of the managers.
  init(clock: any CacheClock = SystemClock()) {
    self.clock = clock
    telemetry = Telemetry([.records { [groups] in groups.add($0) }], clock: clock)
  }

  /// Begins a group. Loads that start from now on belong to it. Loads before the first group are left out.
  func begin(_ name: String) {
    let group = Group(name: name, start: clock.now)
    groups.all.withLock { $0.append(group) }
  }

  /// Returns the groups that have loads, in order. Waits until all work of the loads has ended.
  func finish() async -> [Group] {
    await telemetry?.idle()
    return groups.all.withLock { $0.filter { !$0.loads.isEmpty } }
  }
}
#endif
