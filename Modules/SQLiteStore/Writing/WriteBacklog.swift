#if SQLite
internal import CacheCore

/// What waits to be stored, or is being stored: so much and no more lies in memory, however slow the disk is.
final class WriteBacklog: Sendable {
  private let count: Int
  private let bytes: Int
  private let waiting = Lock((count: 0, bytes: 0))

  /// - Parameters:
  ///   - count: pieces of work that may wait.
  ///   - bytes: that they may hold together.
  init(count: Int, bytes: Int) { (self.count, self.bytes) = (count, bytes) }

  /// Whether something of so many bytes may wait too. When nothing waits it may, however large it is.
  private func hasRoom(for size: Int, beside waiting: (count: Int, bytes: Int)) -> Bool {
    waiting.count == 0 || waiting.count < count && waiting.bytes < bytes && size <= bytes - waiting.bytes
  }

  /// Whether anything may wait.
  var hasRoom: Bool { hasRoom(for: 0) }

  func hasRoom(for size: Int) -> Bool { waiting.withLock { hasRoom(for: size, beside: $0) } }

  /// - Returns: false when it must not wait; else ``leave(_:)`` follows.
  func enter(_ size: Int) -> Bool {
    waiting.withLock { waiting in
      guard hasRoom(for: size, beside: waiting) else { return false }
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
