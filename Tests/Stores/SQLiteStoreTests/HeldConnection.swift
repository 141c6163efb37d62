#if SQLite
import CacheTesting
import Dispatch

@testable import SQLiteStore

/// Blocks the writing connection until it is released.
final class HeldConnection: Sendable {
  private let begin = Gate(isOpen: true)
  private let end = DispatchSemaphore(value: 0)
  private let task: Task<Void, any Error>

  init(of cache: SQLiteCache) async {
    task = Task { [begin, end] in
      try await cache.engine.file.write { _, _ in
        _ = begin.arrive {}
        end.wait()
      }
    }
    await begin.arrived()
  }

  deinit { end.signal() }

  func release() async throws {
    end.signal()
    try await task.value
  }
}
#endif
