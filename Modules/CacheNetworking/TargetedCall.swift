internal import CacheCore

/// What ``Delegate`` and ``AsyncDelegate`` hold: a closure that is bound to a target, weakly, and may be replaced at any time.
final class TargetedCall<Call: Sendable>: Sendable {
  private struct Bound: Sendable {
    let isAlive: @Sendable () -> Bool
    let call: Call
  }

  private let bound = Lock<Bound?>(nil)

  /// The closure, to be called outside the lock.
  var current: Call? { bound.withLock { $0 }?.call }

  /// Whether there is one, and its target lives.
  var isSet: Bool { bound.withLock { $0 }?.isAlive() ?? false }

  /// - Parameter call: must hold `target` weakly itself.
  func set(on target: some AnyObject & Sendable, _ call: Call) {
    replace(by: Bound(isAlive: { [weak target] in target != nil }, call: call))
  }

  func reset() { replace(by: nil) }

  /// The old one is let go of outside the lock: what it captured may run a `deinit` that comes back here.
  private func replace(by new: Bound?) {
    let old = bound.withLock { state in
      defer { state = new }
      return state
    }
    withExtendedLifetime(old) {}
  }
}
