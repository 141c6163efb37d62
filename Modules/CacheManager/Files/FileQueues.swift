internal import CacheCore
internal import Dispatch

/// The queues for the blocking calls that write callers' files. They never block the cooperative pool. There are several, so that
/// one slow file system does not delay all files.
enum FileQueues {
  private static let lanes = (0..<4).map { DispatchQueue(label: "etagere.download.\($0)", qos: .utility) }
  private static let turn = Lock(0)

  /// Returns the queue for one file. Work on the file runs in the order in which it was submitted.
  static func next() -> DispatchQueue {
    lanes[
      turn.withLock { turn in
        turn = (turn + 1) % lanes.count
        return turn
      }]
  }
}

extension DispatchQueue {
  /// Runs blocking work in the queue, and waits for it without blocking.
  func perform<Value: Sendable>(
    _ work: @escaping @Sendable () throws(CacheError) -> Value
  ) async throws(CacheError) -> Value {
    let result: Result<Value, CacheError> = await withCheckedContinuation { continuation in
      async { continuation.resume(returning: Result(catching: work)) }
    }
    return try result.get()
  }
}
