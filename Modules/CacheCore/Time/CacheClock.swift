#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

/// The one seam for time.
///
/// ``now`` feeds freshness and HTTP dates, ``uptime`` measures how long things took, ``sleep(for:)`` drives time-outs, back-off
/// and link shaping. Tests inject `ManualClock` of `CacheTesting` and never wait.
public protocol CacheClock: Sendable {
  /// Wall time. May jump when somebody sets the machine's clock.
  var now: Timestamp { get }
  /// Time since some fixed moment; never goes back. Only differences mean anything.
  var uptime: Duration { get }
  /// Returns after `duration`, or throws as soon as the task is cancelled.
  func sleep(for duration: Duration) async throws(CancellationError)
}

/// The machine's own clock.
public struct SystemClock: CacheClock {
  /// The machine's own clock.
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
