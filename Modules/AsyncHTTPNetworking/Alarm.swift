#if AsyncHTTP
internal import NIOCore
internal import Synchronization

/// The one time at which somebody has to look at all of a downloader's transfers.
///
/// Each transfer only says by when it has to be looked at. Most end long before, and then have cost no timer: a time that is
/// later than the one that is set is found when that one comes.
struct Alarm: ~Copyable, Sendable {
  private static var never: UInt64 { .max }

  private let firesAt = Atomic(never)

  /// Whether a timer has to be set for this time; not so when there is an earlier one.
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

  /// A timer's time has come; false for one in whose place an earlier one was set.
  func isDue(_ due: NIODeadline) -> Bool {
    firesAt.compareExchange(expected: due.uptimeNanoseconds, desired: Self.never, ordering: .acquiringAndReleasing).exchanged
  }
}
#endif
