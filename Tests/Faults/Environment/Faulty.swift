import CacheCore
import DiskStore
import Foundation

/// System calls that fail, or take their time, when the suite says so.
final class Faulty: Sendable {
  struct State: Sendable {
    /// What writing fails with.
    var failure: Int32?
    /// Microseconds that a write, a flush, a move and a removal take longer.
    var delay: UInt32 = 0
    /// How often it failed, or was delayed.
    var count = 0
  }

  private let state = Lock(State())

  func set(_ change: (inout State) -> Void) { state.withLock { change(&$0) } }

  var current: State { state.withLock { $0 } }

  private func pass() -> SystemError? {
    let (failure, delay) = state.withLock { state in
      if state.failure != nil || state.delay > 0 { state.count += 1 }
      return (state.failure, state.delay)
    }
    if delay > 0 { usleep(delay) }
    return failure.map { SystemError(number: $0) }
  }

  var calls: FileCalls {
    let system = FileCalls.system
    var calls = system
    calls.write = { [self] descriptor, bytes, offset in
      pass().map { .failure($0) } ?? system.write(descriptor, bytes, offset)
    }
    calls.sync = { [self] descriptor in pass() ?? system.sync(descriptor) }
    calls.rename = { [self] from, to in pass() ?? system.rename(from, to) }
    calls.unlink = { [self] path in
      // Removing needs no room.
      _ = pass()
      return system.unlink(path)
    }
    return calls
  }
}
