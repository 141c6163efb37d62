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
  public mutating func delegate<Target: AnyObject & Sendable>(on target: Target, block: @escaping @Sendable (Target) -> Output) {
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

/// A ``Delegate`` whose closure may suspend and may refuse.
///
/// ```swift
/// var hooks = DownloaderHooks()
/// hooks.onBodyReceived.delegate(on: watcher) { (watcher, exchange) in try await watcher.decrypt(exchange.data) }
/// ```
///
/// - Important: The target is referenced weakly, and retained by a call while it runs. Everything else that the closure captures
///   is referenced strongly.
public struct AsyncDelegate<Input: Sendable, Output: Sendable>: Sendable {
  private var hook: TargetedCall<@Sendable (Input) async throws -> Output?>?

  /// Creates an empty box.
  public init() {}

  /// Creates a box with a closure that has no target. The box retains the closure.
  public init(_ block: @escaping @Sendable (Input) async throws -> Output) {
    hook = TargetedCall(isAlive: { true }, call: block)
  }

  /// Sets the hook and replaces the previous one.
  ///
  /// - Parameters:
  ///   - target: The object that the hook belongs to, referenced weakly.
  ///   - block: The closure, called with the target. It may be isolated to an actor. An error refuses what the call is about.
  public mutating func delegate<Target: AnyObject & Sendable>(
    on target: Target, block: @escaping @Sendable (Target, Input) async throws -> Output
  ) {
    hook = TargetedCall(isAlive: { [weak target] in target != nil }) { [weak target] input in
      guard let target else { return nil }
      return try await block(target, input)
    }
  }

  /// Removes the hook. A call that is running continues.
  public mutating func reset() { hook = nil }

  /// Whether a hook is set and its target is alive.
  public var isSet: Bool { hook?.isAlive() ?? false }

  /// Whether a hook is set, even if its target was released.
  package var hasHook: Bool { hook != nil }

  /// Calls the hook. Returns `nil` if none is set or its target was released.
  ///
  /// - Throws: The closure's error if it is a ``CacheError``, ``CacheError/cancelled`` for a `CancellationError`, and an error
  ///   with ``CacheError/Code/refused`` for another one.
  @discardableResult
  public func callAsync(_ input: Input) async throws(CacheError) -> Output? {
    guard let hook else { return nil }
    do {
      return try await hook.call(input)
    } catch {
      throw CacheError.refusal(error, reason: "a hook refused")
    }
  }
}

extension AsyncDelegate where Input == Void {
  /// Sets a hook without input and replaces the previous one.
  public mutating func delegate<Target: AnyObject & Sendable>(
    on target: Target, block: @escaping @Sendable (Target) async throws -> Output
  ) {
    delegate(on: target) { (target, _) in try await block(target) }
  }

  /// Calls the hook. Returns `nil` if none is set or its target was released.
  @discardableResult
  public func callAsync() async throws(CacheError) -> Output? { try await callAsync(()) }
}
