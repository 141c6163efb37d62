#if Redis && Origin
import CacheCore
import Foundation

/// The loads and purges of one process: those that run, the number of those that have ended, and the times of hits in memory.
final class LoadLog: Sendable {
  private struct Operation {
    var name: String
    var start: Duration
    /// The start of the earliest operation with the same name whose work this one may have joined, also through others.
    var sharedSince: Duration
  }

  private struct State {
    var running: [Int: Operation] = [:]
    var started = 0
    var counts: [String: Int] = [:]
    /// The times of hits in memory by phase, in nanoseconds.
    var times: [[Int64]]
    var hasFailed = false
  }

  /// The time after which a load or a purge counts as a hang.
  static let limit = Duration.seconds(60)

  private let state: Lock<State>
  private let clock = SystemClock()

  /// The file of the process's notes, which is evidence after a failure.
  private let notes: Lock<FileHandle?>

  init(phases: Int, notes path: String) {
    state = Lock(State(times: Array(repeating: [], count: phases)))
    _ = FileManager.default.createFile(atPath: path, contents: nil)
    notes = Lock(FileHandle(forWritingAtPath: path))
  }

  /// Adds a line to the notes.
  func note(_ line: String) {
    let text = "\(clock.uptime / .seconds(1)) \(line)\n"
    notes.withLock { $0?.write(Data(text.utf8)) }
  }

  // MARK: Operations

  func begin(_ name: String) -> Int {
    state.withLock { state in
      state.started += 1
      let now = clock.uptime
      let earlier = state.running.values.lazy.filter { $0.name == name }.map(\.sharedSince).min()
      state.running[state.started] = Operation(name: name, start: now, sharedSince: earlier ?? now)
      return state.started
    }
  }

  /// Records the end of an operation, which must be its only one.
  ///
  /// - Returns: The time since the start of the earliest operation whose work it may have joined.
  @discardableResult
  func end(_ number: Int) -> Duration {
    guard let operation = state.withLock({ $0.running.removeValue(forKey: number) }) else {
      fail("operation \(number) has ended twice")
      return .zero
    }
    return clock.uptime - operation.sharedSince
  }

  func count(_ name: String, _ number: Int = 1) { state.withLock { $0.counts[name, default: 0] += number } }

  /// The operations that have not ended.
  var running: [String] { state.withLock { $0.running.values.map(\.name) } }

  /// An operation that has been running for longer than the limit.
  var overdue: String? {
    let now = clock.uptime
    return state.withLock { $0.running.values.first { now - $0.start > Self.limit }?.name }
  }

  /// The number of operations that have started, and the counts by name.
  var counts: [String: Int] { state.withLock { $0.counts.merging(["operations": $0.started]) { $1 } } }

  // MARK: Times

  func add(_ time: Duration, to phase: Int) {
    state.withLock { if $0.times.indices.contains(phase) { $0.times[phase].append(time.saturatedNanoseconds) } }
  }

  /// The 99th percentile of each phase in nanoseconds, or `nil` for a phase with few hits.
  var percentiles: [Int64?] {
    state.withLock { state in
      state.times.map { $0.count < 200 ? nil : $0.sorted()[$0.count * 99 / 100] }
    }
  }

  // MARK: Failures

  /// Reports the first failure to the parent process, which then ends the trial.
  func fail(_ reason: String) {
    let isFirst = state.withLock { state in
      defer { state.hasFailed = true }
      return !state.hasFailed
    }
    note("failed \(reason)")
    if isFirst { Children.tell("failed \(reason.replacing("\n", with: " "))") }
  }
}
#endif
