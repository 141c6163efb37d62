// All continuations of this package are of the type `Resumption`, so that the thread sanitizer's build can replace it.

#if TSAN
/// A suspended task, which is resumed once with a value, as it is built for the thread sanitizer.
///
/// The value passes through a lock. If a task is resumed while it is about to suspend, only an atomic of the concurrency runtime
/// orders the two threads. The sanitizer does not see that atomic, and would report a race.
package struct Resumption<Value: Sendable>: Sendable {
  fileprivate final class Slot: Sendable {
    let value = Lock<Value?>(nil)
  }

  fileprivate let slot: Slot
  fileprivate let task: CheckedContinuation<Void, Never>

  package func resume(returning value: Value) {
    slot.value.withLock { $0 = value }
    task.resume()
  }

  package func resume() where Value == Void { resume(returning: ()) }
}

/// Suspends the calling task until it is resumed with a value.
package func withResumption<Value: Sendable>(_ body: (Resumption<Value>) -> Void) async -> Value {
  let slot = Resumption<Value>.Slot()
  await withCheckedContinuation { body(Resumption(slot: slot, task: $0)) }
  guard let value = slot.value.withLock({ $0 }) else { preconditionFailure("a task was resumed without a value") }
  return value
}
#else
// A debug build checks that a task is resumed exactly once. A release build does not, because a check costs an allocation and
// about 100 ns, and a load suspends several times.
#if DEBUG
/// A suspended task, which is resumed once with a value.
@usableFromInline
package typealias Resumption<Value> = CheckedContinuation<Value, Never>
#else
/// A suspended task, which is resumed once with a value.
@usableFromInline
package typealias Resumption<Value> = UnsafeContinuation<Value, Never>
#endif

/// Suspends the calling task until it is resumed with a value.
@inlinable
package func withResumption<Value: Sendable>(_ body: (Resumption<Value>) -> Void) async -> Value {
  #if DEBUG
  await withCheckedContinuation(body)
  #else
  await withUnsafeContinuation(body)
  #endif
}
#endif
