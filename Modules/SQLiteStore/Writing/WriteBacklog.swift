#if SQLite
internal import CacheCore

/// The limit for pending stores, which bounds their memory on a slow disk.
final class WriteBacklog: Sendable {
  private let count: Int
  private let bytes: Int
  private let waiting = Lock((count: 0, bytes: 0))

  /// - Parameters:
  ///   - count: The maximum number of pending stores.
  ///   - bytes: The maximum total size of pending stores in bytes.
  init(count: Int, bytes: Int) { (self.count, self.bytes) = (count, bytes) }

  /// Whether a store of this many bytes may wait too. A single store of any size may.
  private func hasCapacity(for size: Int, beside waiting: (count: Int, bytes: Int)) -> Bool {
    waiting.count == 0 || waiting.count < count && waiting.bytes < bytes && size <= bytes - waiting.bytes
  }

  /// Whether another store may wait.
  var hasCapacity: Bool { hasCapacity(for: 0) }

  func hasCapacity(for size: Int) -> Bool { waiting.withLock { hasCapacity(for: size, beside: $0) } }

  /// - Returns: `false` if the store is refused. Otherwise ``leave(_:)`` must follow.
  func enter(_ size: Int) -> Bool {
    waiting.withLock { waiting in
      guard hasCapacity(for: size, beside: waiting) else { return false }
      waiting.count += 1
      waiting.bytes += size
      return true
    }
  }

  func leave(_ size: Int) {
    waiting.withLock { waiting in
      waiting.count -= 1
      waiting.bytes -= size
    }
  }
}
#endif
