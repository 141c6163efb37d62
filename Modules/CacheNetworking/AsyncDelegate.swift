/// ``Delegate`` for a hook that may take its time, such as one that asks a person for a password.
///
/// ```swift
/// downloader.delegate.onChallenge.delegate(on: self) { (self, challenge) in await self.credential(for: challenge.host) }
/// ```
///
/// - Important: The target is held weakly while nothing runs, and kept alive by a call that is under way.
public final class AsyncDelegate<Input: Sendable, Output: Sendable>: Sendable {
  private let hook = TargetedCall<@Sendable (Input) async -> Output?>()

  /// An empty hook.
  public init() {}

  /// Sets the hook; one that was set before is replaced.
  ///
  /// - Parameters:
  ///   - target: Whose hook it is; held weakly.
  ///   - block: Called with the target while it lives; may be bound to an actor.
  public func delegate<Target: AnyObject & Sendable>(
    on target: Target, block: @escaping @Sendable (Target, Input) async -> Output
  ) {
    hook.set(on: target) { [weak target] input in
      guard let target else { return nil }
      return await block(target, input)
    }
  }

  /// Takes the hook out; a call that is under way goes on.
  public func reset() { hook.reset() }

  /// Whether a hook is set whose target still lives.
  public var isSet: Bool { hook.isSet }

  /// Calls the hook; nil when none is set or its target is gone.
  public func callAsync(_ input: Input) async -> Output? {
    guard let call = hook.current else { return nil }
    return await call(input)
  }

  /// Calls the hook; nil when none is set or its target is gone.
  @discardableResult
  public func callAsFunction(_ input: Input) async -> Output? { await callAsync(input) }
}
