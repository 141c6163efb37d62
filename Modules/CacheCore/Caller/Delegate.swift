/// A box for a hook that an object sets without being retained.
///
/// A plain closure that an app stores for long easily retains the view controller that it calls. This box has a weak reference to
/// its target and passes it to the closure, so `[weak self]` is not needed. After the target is released, the box is empty.
///
/// ```swift
/// var policy = RetryPolicy.standard
/// policy.onRetry.delegate(on: watcher) { (watcher, failure) in watcher.note("attempt \(failure.attempt) failed") }
/// ```
///
/// The box is a value. A copy keeps the hook that it was copied with, even if the original gets another one.
///
/// - Important: The target is referenced weakly, and everything else that the closure captures strongly.
public struct Delegate<Input, Output>: Sendable {
  private var hook: TargetedCall<@Sendable (Input) -> Output?>?

  /// Creates an empty box.
  public init() {}

  /// Creates a box with a closure that has no target. The box retains the closure.
  public init(_ block: @escaping @Sendable (Input) -> Output) { hook = TargetedCall(isAlive: { true }, call: block) }

  /// Sets the hook and replaces the previous one.
  ///
  /// - Parameters:
  ///   - target: The object that the hook belongs to, referenced weakly.
  ///   - block: The closure, called with the target on the thread that calls the hook.
  public mutating func delegate<Target: AnyObject & Sendable>(
    on target: Target, block: @escaping @Sendable (Target, Input) -> Output
  ) {
    hook = TargetedCall(isAlive: { [weak target] in target != nil }) { [weak target] input in target.map { block($0, input) } }
  }

  /// Removes the hook.
  public mutating func reset() { hook = nil }

  /// Whether a hook is set and its target is alive.
  public var isSet: Bool { hook?.isAlive() ?? false }

  /// Calls the hook. Returns `nil` if none is set or its target was released.
  public func call(_ input: Input) -> Output? { hook?.call(input) }

  /// Calls the hook, as ``call(_:)`` does.
  @discardableResult
  public func callAsFunction(_ input: Input) -> Output? { call(input) }
}

extension Delegate where Input == Void {
  /// Sets a hook without input and replaces the previous one.
  public mutating func delegate<Target: AnyObject & Sendable>(
    on target: Target, block: @escaping @Sendable (Target) -> Output
  ) {
    delegate(on: target) { (target, _) in block(target) }
  }

  /// Calls the hook. Returns `nil` if none is set or its target was released.
  public func call() -> Output? { call(()) }

  /// Calls the hook, as ``call()`` does.
  @discardableResult
  public func callAsFunction() -> Output? { call(()) }
}

/// A closure, and another one that tells whether its target is alive. An object, so that a box is one word.
final class TargetedCall<Call: Sendable>: Sendable {
  let isAlive: @Sendable () -> Bool
  let call: Call

  init(isAlive: @escaping @Sendable () -> Bool, call: Call) { (self.isAlive, self.call) = (isAlive, call) }
}
