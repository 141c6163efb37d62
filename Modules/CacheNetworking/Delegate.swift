internal import CacheCore

/// A hook that one object fills in, without keeping that object alive.
///
/// A plain closure property invites `self` into a retain cycle; this box holds its target weakly and hands it to the closure, so that nobody has to
/// write `[weak self]`. Once the target is gone the hook is as if it had never been set.
///
/// ```swift
/// downloader.delegate.onData.delegate(on: self) { (self, chunk) in self.show(chunk.data.count) }
/// ```
///
/// - Important: The target is held weakly; what the closure captures besides it is held strongly.
public final class Delegate<Input, Output>: Sendable {
  private struct Hook: Sendable {
    let isAlive: @Sendable () -> Bool
    let call: @Sendable (Input) -> Output?
  }

  private let hook = Lock<Hook?>(nil)

  /// An empty hook.
  public init() {}

  /// Sets the hook; one that was set before is replaced.
  ///
  /// - Parameters:
  ///   - target: Whose hook it is; held weakly.
  ///   - block: Called on the thread of whoever calls the hook, with the target while it lives.
  public func delegate<Target: AnyObject & Sendable>(
    on target: Target, block: @escaping @Sendable (Target, Input) -> Output
  ) {
    let new = Hook(
      isAlive: { [weak target] in target != nil },
      call: { [weak target] input in target.map { block($0, input) } })
    replace(by: new)
  }

  /// Takes the hook out.
  public func reset() { replace(by: nil) }

  /// Whether a hook is set whose target still lives.
  public var isSet: Bool { hook.withLock { $0 }?.isAlive() ?? false }

  /// Calls the hook; nil when none is set or its target is gone.
  public func call(_ input: Input) -> Output? { hook.withLock { $0 }?.call(input) }

  /// Calls the hook; nil when none is set or its target is gone.
  @discardableResult
  public func callAsFunction(_ input: Input) -> Output? { call(input) }

  /// The old hook is let go of outside the lock: what it captured may run a `deinit` that comes back here.
  private func replace(by new: Hook?) {
    let old = hook.withLock { state in
      defer { state = new }
      return state
    }
    withExtendedLifetime(old) {}
  }
}

extension Delegate where Input == Void {
  /// Calls the hook; nil when none is set or its target is gone.
  @discardableResult
  public func call() -> Output? { call(()) }

  /// Calls the hook; nil when none is set or its target is gone.
  @discardableResult
  public func callAsFunction() -> Output? { call(()) }
}
