internal import Dispatch

#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

/// The source of time for all modules.
///
/// ``now`` is for freshness and HTTP dates, ``uptime`` for measuring durations, and ``sleep(for:)`` for timeouts, backoff and
/// traffic shaping. Tests use `ManualClock` of `CacheTesting`, so they never wait.
public protocol CacheClock: Sendable {
  /// The wall-clock time. It may jump when the system's clock is set.
  var now: Timestamp { get }
  /// The time since a fixed moment. It never decreases, and only differences are meaningful.
  var uptime: Duration { get }
  /// Returns after `duration`, or throws as soon as the task is cancelled.
  func sleep(for duration: Duration) async throws(CancellationError)
}

/// The system's clock.
public struct SystemClock: CacheClock {
  /// Creates a clock.
  public init() {}

  public var now: Timestamp {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return Timestamp(time)
  }

  public var uptime: Duration {
    var time = timespec()
    #if canImport(Darwin)
    // On Darwin, CLOCK_MONOTONIC counts the time that the system sleeps. All idle transfers would fail when it wakes.
    clock_gettime(CLOCK_UPTIME_RAW, &time)
    #else
    clock_gettime(CLOCK_MONOTONIC, &time)
    #endif
    return .seconds(Int64(time.tv_sec)) + .nanoseconds(Int64(time.tv_nsec))
  }

  /// Returns after `duration` of ``uptime``, or throws as soon as the task is cancelled.
  public func sleep(for duration: Duration) async throws(CancellationError) { try await SleepQueue.shared.sleep(for: duration) }
}

/// The tasks that sleep on the system's clock, and the one timer that wakes them.
///
/// A cancelled `Task.sleep` leaves its timer and a task in memory until its time is over. Most sleeps here are timeouts that are
/// cancelled after milliseconds, so a busy server would hold those of all loads of the last minute.
final class SleepQueue: Sendable {
  static let shared = SleepQueue()

  /// The longest time for which the timer is set.
  private static let longestWait: Duration = .seconds(86_400)

  private struct State {
    var sleepers: [Int: Resumption<Bool>] = [:]
    /// The uptimes at which the sleepers wake.
    var dues = IndexedHeap<Int, Duration>()
    /// The sleepers that were cancelled before they slept.
    var cancelled: Set<Int> = []
    var lastNumber = 0
    var wakesAt: Duration?
    var timer: (any DispatchSourceTimer)?
  }

  private let clock = SystemClock()
  private let state = Lock(State())

  init() {
    let timer = DispatchSource.makeTimerSource(queue: DispatchQueue(label: "Etagere.SleepQueue", qos: .userInitiated))
    timer.setEventHandler { [weak self] in self?.wake() }
    timer.activate()
    state.withLock { $0.timer = timer }
  }

  deinit { state.withLock { $0.timer }?.cancel() }

  /// The number of tasks that sleep.
  var count: Int { state.withLock { $0.sleepers.count } }
  /// Whether nothing is in memory for any task.
  var isEmpty: Bool { state.withLock { $0.sleepers.isEmpty && $0.dues.isEmpty && $0.cancelled.isEmpty } }

  func sleep(for duration: Duration) async throws(CancellationError) {
    if Task.isCancelled { throw CancellationError() }
    guard duration > .zero else { return await Task.yield() }
    let due = clock.uptime + duration
    let number = state.withLock { state in
      state.lastNumber += 1
      return state.lastNumber
    }
    let isOver = await withTaskCancellationHandler {
      await withResumption { add(number, due, $0) }
    } onCancel: {
      cancel(number)
    }
    // The cancellation handler has ended.
    state.withLock { _ = $0.cancelled.remove(number) }
    guard isOver else { throw CancellationError() }
  }

  private func add(_ number: Int, _ due: Duration, _ sleeper: Resumption<Bool>) {
    let isCancelled = state.withLock { state in
      if state.cancelled.contains(number) { return true }
      state.sleepers[number] = sleeper
      state.dues.set(number, due)
      if state.wakesAt.map({ due < $0 }) ?? true { setTimer(&state, due) }
      return false
    }
    if isCancelled { sleeper.resume(returning: false) }
  }

  private func cancel(_ number: Int) {
    let sleeper = state.withLock { state in
      state.dues.remove(number)
      let sleeper = state.sleepers.removeValue(forKey: number)
      // It has not slept yet, or it has just been woken.
      if sleeper == nil { state.cancelled.insert(number) }
      return sleeper
    }
    sleeper?.resume(returning: false)
  }

  /// Sets the timer under the lock, so that the last call has the earliest time.
  private func setTimer(_ state: inout State, _ due: Duration) {
    state.wakesAt = due
    let wait = min(max(due - clock.uptime, .zero), Self.longestWait)
    state.timer?.schedule(deadline: .now() + .nanoseconds(Int(wait.saturatedNanoseconds)))
  }

  private func wake() {
    let now = clock.uptime
    let woken = state.withLock { state in
      var woken: [Resumption<Bool>] = []
      while let first = state.dues.first, first.rank <= now {
        state.dues.remove(first.member)
        if let sleeper = state.sleepers.removeValue(forKey: first.member) { woken.append(sleeper) }
      }
      state.wakesAt = nil
      if let next = state.dues.first { setTimer(&state, next.rank) }
      return woken
    }
    for sleeper in woken { sleeper.resume(returning: true) }
  }
}
