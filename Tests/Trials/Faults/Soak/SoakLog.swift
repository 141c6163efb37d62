#if Redis && Origin && Service && SQLite
import CacheCore
import Foundation

/// The time in which this process has been running. The time in which it was stopped (`SIGSTOP`) does not count.
final class RunningTime: Sendable {
  /// The longest time between two readings that counts. The thread that reads the clock pauses for 100 ms.
  private static let longestStep = Duration.milliseconds(500)

  private let state = Lock((time: Duration.zero, last: SystemClock().uptime))

  /// The time so far.
  var value: Duration { state.withLock { $0.time } }

  func advance() {
    let now = SystemClock().uptime
    state.withLock { state in
      state.time += min(now - state.last, Self.longestStep)
      state.last = now
    }
  }
}

/// A switch that is turned on once.
final class SoakSwitch: Sendable {
  private let state = Lock(false)

  var isOn: Bool { state.withLock { $0 } }

  func turnOn() { state.withLock { $0 = true } }
}

/// The operations of one member that run, and its counts.
final class SoakLog: Sendable {
  private struct Operation {
    var name: String
    var start: Duration
    var isWaiter: Bool
    var isReported = false
  }

  private struct State {
    var running: [Int: Operation] = [:]
    var started = 0
    var reports = 0
    var notes: Set<String> = []
  }

  /// The running time after which an operation counts as hung. The longest operations without a hang wait for the idle time of
  /// the origin's engine two or three times, and for a server or a process that is paused for up to 5 s.
  static let limit = Duration.seconds(30)
  /// The timeout of loads and of clients. It is above the limit, so it does not end an operation that hangs.
  static let timeout = Duration.seconds(60)
  /// The time that a request waits for an equal one. It is above the limit, so it does not hide a request that never ends. In a
  /// fleet, half of it is below the limit: a process waits for another process at most that long.
  static let collapseTimeout = Duration.seconds(40)
  /// The number of failures that a process describes. The others are only counted.
  private static let mostReports = 50
  /// The number of different storage failures that a process describes.
  private static let mostNotes = 200

  let counts: SharedCounts
  let member: SoakMember
  private let tell: @Sendable (String) -> Void
  private let tellNote: @Sendable (String) -> Void
  private let time: RunningTime
  private let state = Lock(State())

  /// - Parameters:
  ///   - tell: Prints a failure, or sends it to the parent process.
  ///   - note: The same for a line that is printed only with `--verbose`.
  init(
    _ counts: SharedCounts, _ member: SoakMember, _ time: RunningTime, tell: @escaping @Sendable (String) -> Void,
    note: @escaping @Sendable (String) -> Void
  ) {
    (self.counts, self.member, self.time, self.tell, tellNote) = (counts, member, time, tell, note)
  }

  // MARK: Operations

  /// - Parameter isWaiter: Whether the operation ends with a completion, which is called exactly once.
  func begin(_ name: String, isWaiter: Bool = false) -> Int {
    let now = time.value
    return state.withLock { state in
      state.started += 1
      state.running[state.started] = Operation(name: name, start: now, isWaiter: isWaiter)
      return state.started
    }
  }

  /// Records the end of an operation, which must be its only one.
  func end(_ number: Int) {
    let operation = state.withLock { $0.running.removeValue(forKey: number) }
    if operation == nil { fail(.lost, "operation \(number) has ended twice") }
  }

  /// Counts and reports the operations that have been running for longer than the limit.
  func reportOverdue() {
    let now = time.value
    let overdue = state.withLock { state in
      let found = state.running.filter { !$0.value.isReported && now - $0.value.start > Self.limit }
      for number in found.keys { state.running[number]?.isReported = true }
      return found.values.map { $0 }
    }
    for operation in overdue {
      fail(operation.isWaiter ? .lost : .hung, "\(operation.name) has been running for more than \(Self.limit)")
    }
  }

  /// Whether every operation has ended, except those that were reported.
  var isIdle: Bool { state.withLock { $0.running.values.allSatisfy(\.isReported) } }

  func count(_ count: SharedCounts.Count, _ number: Int = 1) { counts.add(count, number, member) }

  // MARK: Failures

  /// Counts a broken guarantee, and describes it.
  func fail(_ count: SharedCounts.Count, _ reason: String) {
    self.count(count)
    let isReported = state.withLock { state in
      state.reports += 1
      return state.reports <= Self.mostReports
    }
    if isReported { tell("\(count): \(reason.replacing("\n", with: " "))") }
  }

  /// An operation that may fail with an error.
  struct Attempt {
    var name: String
    var source: SharedCounts.Source
    /// The uptime at which the operation began.
    var start: Duration
    /// Whether the operation writes files of its own: the destination of a load, or the temporary file of a body. The failure of
    /// a cache's disk does not fail a load.
    var writesFiles = false
    /// Whether the body has begun, and the rest of a stored part is not available, so that the body breaks off.
    var lacksRest = false
  }

  /// Counts an error. It is a broken guarantee unless a disturbance explains it that lasted at some time of the operation.
  func fail(_ error: CacheError, _ attempt: Attempt) {
    let kind: SharedCounts.Count
    switch error.code {
    case .timedOut, .revalidationFailed: kind = .timedOut
    case .connectionLost, .connectionRefused: kind = .connection
    case .truncatedBody, .malformedResponse, .bodyInterrupted, .damagedContentCoding: kind = .body
    case .unacceptableStatus: kind = .status
    case .fileSystem, .diskFull, .readOnly, .overloaded, .storeUnavailable:
      note("\(attempt.name): \(error.code.rawValue): \(error)")
      guard hasStorageFailure(attempt) else {
        return fail(.unexplained, "\(attempt.name): an error of the storage \(times(attempt)): \(error.code.rawValue): \(error)")
      }
      return count(.storage)
    default: return fail(.wrong, "\(attempt.name): an error that no disturbance causes, \(error.code.rawValue): \(error)")
    }
    fail(kind, attempt, "\(error.code.rawValue): \(error)")
  }

  /// Counts a failed request by its kind, or a broken guarantee if no disturbance explains it.
  func fail(_ kind: SharedCounts.Count, _ attempt: Attempt, _ reason: String) {
    if kind == .body || kind == .connection, attempt.lacksRest { return count(kind) }
    if counts.explainsFailure(of: attempt.source, member, since: attempt.start) || hasStorageFailure(attempt) {
      count(kind)
    } else {
      fail(.unexplained, "\(attempt.name): failed without a disturbance \(times(attempt)): \(reason)")
    }
  }

  /// Reports a stale response that was used because of an error, if no disturbance explains the error.
  func check(fallbackReason error: CacheError, _ attempt: Attempt) {
    if !counts.explainsFailure(of: attempt.source, member, since: attempt.start) {
      fail(.unexplained, "\(attempt.name): stale without a disturbance \(times(attempt)): \(error.code.rawValue): \(error)")
    }
  }

  private func times(_ attempt: Attempt) -> String { counts.times(of: attempt.source, member, since: attempt.start) }

  private func hasStorageFailure(_ attempt: Attempt) -> Bool {
    attempt.writesFiles && counts.explainsStorageFailure(member, since: attempt.start)
  }

  /// Describes a failure once. Numbers do not distinguish failures.
  private func note(_ text: String) {
    let key = text.filter { !$0.isNumber }
    let isNew = state.withLock { $0.notes.count < Self.mostNotes && $0.notes.insert(key).inserted }
    if isNew { tellNote(text.replacing("\n", with: " ")) }
  }

  // MARK: The thread

  /// Starts a thread that advances the running time and reports overdue operations. It does not depend on the tasks.
  ///
  /// - Parameters:
  ///   - parent: The parent process. This process ends with it.
  ///   - apply: Called every 100 ms.
  static func watch(_ logs: [SoakLog], _ time: RunningTime, parent: pid_t? = nil, apply: @escaping @Sendable () -> Void = {}) {
    Thread.detachNewThread {
      while parent == nil || getppid() == parent {
        time.advance()
        for log in logs { log.reportOverdue() }
        apply()
        usleep(100_000)
      }
      exit(1)
    }
  }
}
#endif
