/// A hook that one object fills in, without keeping that object alive.
///
/// A plain closure property invites `self` into a retain cycle; this box holds its target weakly and hands it to the closure, so
/// that nobody has to write `[weak self]`. Once the target is gone the hook is as if it had never been set.
///
/// ```swift
/// downloader.delegate.onData.delegate(on: self) { (self, chunk) in self.show(chunk.data.count) }
/// ```
///
/// - Important: The target is held weakly; what the closure captures besides it is held strongly.
public final class Delegate<Input, Output>: Sendable {
  private let hook = TargetedCall<@Sendable (Input) -> Output?>()

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
    hook.set(on: target) { [weak target] input in target.map { block($0, input) } }
  }

  /// Takes the hook out.
  public func reset() { hook.reset() }

  /// Whether a hook is set whose target still lives.
  public var isSet: Bool { hook.isSet }

  /// Calls the hook; nil when none is set or its target is gone.
  public func call(_ input: Input) -> Output? { hook.current?(input) }

  /// Calls the hook; nil when none is set or its target is gone.
  @discardableResult
  public func callAsFunction(_ input: Input) -> Output? { call(input) }
}

extension Delegate where Input == Void {
  /// Calls the hook; nil when none is set or its target is gone.
  @discardableResult
  public func call() -> Output? { call(()) }

  /// Calls the hook; nil when none is set or its target is gone.
  @discardableResult
  public func callAsFunction() -> Output? { call(()) }
}
