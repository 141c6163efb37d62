#if TSAN
internal import Foundation
#else
public import Synchronization
#endif

#if TSAN
/// The only lock of this package, as it is built for the thread sanitizer.
///
/// On Linux, the sanitizer cannot see into `Synchronization.Mutex`, which is a futex, and reports a race whenever one is
/// contended. Its build sets the compilation condition `TSAN` and uses `NSLock`, which the sanitizer understands.
package struct Lock<State>: ~Copyable, Sendable {
  // Proof of `@unchecked Sendable`: `state` is accessed only between `lock()` and `unlock()`.
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
/// The only lock of this package. Its state is accessible only while the lock is held.
///
/// All locking uses this type, so that the thread sanitizer's build can replace the implementation. It is inlinable because a hit
/// in the memory store is little more than one critical section. It is usable from inline code because other modules would
/// otherwise call it unspecialized and look up generic metadata each time.
@usableFromInline
package struct Lock<State>: ~Copyable, Sendable {
  // Proof of `@unchecked Sendable`: the value never leaves the mutex. Callers access it as `inout` during a critical section.
  @usableFromInline
  struct Guarded: @unchecked Sendable {
    @usableFromInline var state: State

    @usableFromInline init(state: State) { self.state = state }
  }

  @usableFromInline let mutex: Mutex<Guarded>

  @inlinable
  package init(_ state: sending State) { mutex = Mutex(Guarded(state: state)) }

  /// Runs `body` while it holds the lock. `body` must never call user code.
  @inlinable
  package borrowing func withLock<Result, Failure: Error>(
    _ body: (inout State) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    // `Mutex` requires a `sending` result. The result is as sendable as the caller made it, so it is passed in a box with the
    // same proof.
    try mutex.withLock { guarded throws(Failure) in Passed(value: try body(&guarded.state)) }.value
  }

  /// Runs `body` unless another thread holds the lock. In that case it returns `nil` without waiting.
  @inlinable
  package borrowing func withLockIfAvailable<Result>(_ body: (inout State) -> Result) -> Result? {
    mutex.withLockIfAvailable { guarded in Passed(value: body(&guarded.state)) }?.value
  }

  // Proof of `@unchecked Sendable`: the value is passed once, from the critical section to the caller that created it there.
  @usableFromInline
  struct Passed<Value>: @unchecked Sendable {
    @usableFromInline let value: Value

    @usableFromInline init(value: Value) { self.value = value }
  }
}
#endif
