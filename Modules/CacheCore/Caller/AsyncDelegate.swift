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
