#if TSAN
internal import Foundation
#else
public import Synchronization
#endif

#if TSAN
/// The one lock of this package, as it is built for the thread sanitizer.
///
/// The sanitizer can't see into `Synchronization.Mutex` on Linux (a futex) and reports a race in every contended one, so the
/// sanitizer's run sets the compilation condition `TSAN` and gets `NSLock`, which it understands.
package struct Lock<State>: ~Copyable, Sendable {
  // Proof of `@unchecked Sendable`: `state` is only touched between `lock()` and `unlock()`.
  private final class Storage: @unchecked Sendable {
    let lock = NSLock()
    var state: State

    init(_ state: State) { self.state = state }
  }

  private let storage: Storage

  package init(_ state: sending State) { storage = Storage(state) }

  package borrowing func withLock<Result, Failure: Error>(
    _ body: (inout State) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    storage.lock.lock()
    defer { storage.lock.unlock() }
    return try body(&storage.state)
  }

  package borrowing func withLockIfAvailable<Result>(_ body: (inout State) -> Result) -> Result? {
    guard storage.lock.try() else { return nil }
    defer { storage.lock.unlock() }
    return body(&storage.state)
  }
}
#else
/// The one lock of this package: state that can't be reached without holding it.
///
/// Everything that is locked is locked through this type, so that the thread sanitizer's run can swap what is behind it.
/// Inlinable, because the memory store's hit is little more than one critical section; and usable from inline code as a type,
/// since the other modules call it unspecialised otherwise, which looks up generic metadata at each turn.
@usableFromInline
package struct Lock<State>: ~Copyable, Sendable {
  // Proof of `@unchecked Sendable`: the value never leaves the mutex; callers see it as `inout` for the length of a critical
  // section.
  @usableFromInline
  struct Guarded: @unchecked Sendable {
    @usableFromInline var state: State

    @usableFromInline init(state: State) { self.state = state }
  }

  @usableFromInline let mutex: Mutex<Guarded>

  @inlinable
  package init(_ state: sending State) { mutex = Mutex(Guarded(state: state)) }

  /// Runs `body` while holding the lock. Never call out to a user's code from inside.
  @inlinable
  package borrowing func withLock<Result, Failure: Error>(
    _ body: (inout State) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    // `Mutex` wants a `sending` result; what comes out here is as sendable as the caller made it, so it travels in a box of the
    // same proof.
    try mutex.withLock { guarded throws(Failure) in Passed(value: try body(&guarded.state)) }.value
  }

  /// The same, unless somebody else holds the lock: nil then, without waiting.
  @inlinable
  package borrowing func withLockIfAvailable<Result>(_ body: (inout State) -> Result) -> Result? {
    mutex.withLockIfAvailable { guarded in Passed(value: body(&guarded.state)) }?.value
  }

  // Proof of `@unchecked Sendable`: one value, handed once from the critical section to the caller who made it there.
  @usableFromInline
  struct Passed<Value>: @unchecked Sendable {
    @usableFromInline let value: Value

    @usableFromInline init(value: Value) { self.value = value }
  }
}
#endif
