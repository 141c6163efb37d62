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

  let board: SoakBoard
  let member: SoakMember
  private let tell: @Sendable (String) -> Void
  private let time: RunningTime
  private let state = Lock(State())

  /// - Parameter tell: Prints a line, or sends it to the parent process.
  init(_ board: SoakBoard, _ member: SoakMember, _ time: RunningTime, tell: @escaping @Sendable (String) -> Void) {
    (self.board, self.member, self.time, self.tell) = (board, member, time, tell)
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

  func count(_ count: SoakBoard.Count, _ number: Int = 1) { board.add(count, number, member) }

  // MARK: Failures

  /// Counts a broken guarantee, and describes it.
  func fail(_ count: SoakBoard.Count, _ reason: String) {
    self.count(count)
    let isReported = state.withLock { state in
      state.reports += 1
      return state.reports <= Self.mostReports
    }
    if isReported { tell("\(count): \(reason.replacing("\n", with: " "))") }
  }

  /// Counts an error. A load may fail with it while the origin, the disk or the server of the store is disturbed. No other error
  /// has an explanation.
  func fail(_ error: CacheError, _ name: String) {
    switch error.code {
    case .timedOut, .revalidationFailed: count(.timedOut)
    case .connectionLost, .connectionRefused: count(.connection)
    case .truncatedBody, .malformedResponse, .bodyInterrupted, .damagedContentCoding: count(.body)
    case .unacceptableStatus: count(.status)
    case .fileSystem, .diskFull, .readOnly, .overloaded, .storeUnavailable: count(.storage)
    default: fail(.wrong, "\(name): an error without an explanation, \(error.code.rawValue): \(error)")
    }
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
