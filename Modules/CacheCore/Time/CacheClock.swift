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
    return Timestamp(nanoseconds: Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec))
  }

  public var uptime: Duration {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return .seconds(Int64(time.tv_sec)) + .nanoseconds(Int64(time.tv_nsec))
  }

  public func sleep(for duration: Duration) async throws(CancellationError) {
    do {
      try await Task.sleep(for: duration)
    } catch {
      throw CancellationError()
    }
  }
}
