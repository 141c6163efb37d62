internal import CacheCore

/// Counts what users have removed or cleared, so that a load which began before can't bring it back.
///
/// The count goes up before anything is removed: who still sees the old count writes before the removal, and is removed with the rest.
final class RemovalEpoch: Sendable {
  private let count = Lock(0)

  var current: Int { count.withLock { $0 } }

  func advance() { count.withLock { $0 += 1 } }
}
