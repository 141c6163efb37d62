import CacheCore
import DiskStore
import Foundation

/// System calls that can be made to fail or to be slow.
final class Faulty: Sendable {
  struct State: Sendable {
    /// The error number of writes, if they fail.
    var failure: Int32?
    /// The delay of a write, a flush, a move and a removal in microseconds.
    var delay: UInt32 = 0
    /// The number of failures and delays.
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
      // A removal needs no space, so it does not fail.
      _ = pass()
      return system.unlink(path)
    }
    return calls
  }
}
