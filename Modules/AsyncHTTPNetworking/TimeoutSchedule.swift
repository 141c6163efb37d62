#if AsyncHTTP
internal import NIOCore
internal import Synchronization

/// The earliest time at which a downloader's transfers must be checked for time-outs.
///
/// Each transfer registers the time of its next check. Most transfers end earlier and cost no timer: a later time is found when
/// the earlier timer fires.
struct TimeoutSchedule: ~Copyable, Sendable {
  private static var never: UInt64 { .max }

  private let firesAt = Atomic(never)

  /// Returns whether a timer must be scheduled for this time. Returns `false` if an earlier one is scheduled.
  func set(for due: NIODeadline) -> Bool {
    var current = firesAt.load(ordering: .acquiring)
    while due.uptimeNanoseconds < current {
      let (isSet, found) = firesAt.compareExchange(
        expected: current, desired: due.uptimeNanoseconds, ordering: .acquiringAndReleasing)
      if isSet { return true }
      current = found
    }
    return false
  }

  /// Returns whether the timer that fired is the current one. Returns `false` if an earlier timer has replaced it.
  func isDue(_ due: NIODeadline) -> Bool {
    firesAt.compareExchange(expected: due.uptimeNanoseconds, desired: Self.never, ordering: .acquiringAndReleasing).exchanged
  }
}
#endif
