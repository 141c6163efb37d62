#if Origin
  #if TSAN
    internal import Foundation
  #else
    internal import Synchronization
  #endif

  /// State behind a lock, with the shape of `Mutex`.
  ///
  /// The thread sanitizer cannot see the futex inside `Mutex` and reports races that are none, so its runs (`-DTSAN`) lock with
  /// `NSLock`.
  #if TSAN
    // Unchecked: `state` is private and is read and written by `withLock` alone, between `lock()` and `unlock()`.
    final class OriginLock<State>: @unchecked Sendable {
      private let lock = NSLock()
      private var state: State

      init(_ state: sending State) { self.state = state }

      func withLock<R, E: Error>(_ body: (inout State) throws(E) -> sending R) throws(E) -> sending R {
        lock.lock()
        defer { lock.unlock() }
        return try body(&state)
      }
    }
  #else
    final class OriginLock<State>: Sendable {
      private let mutex: Mutex<State>

      init(_ state: consuming sending State) { mutex = Mutex(state) }

      func withLock<R, E: Error>(_ body: (inout sending State) throws(E) -> sending R) throws(E) -> sending R {
        try mutex.withLock(body)
      }
    }
  #endif
#endif
