internal import CacheCore
internal import Dispatch

/// Where the calls that write callers' files block: never on the cooperative pool, and in a few lanes, so that one slow file
/// system does not hold up all others.
enum FileQueues {
  private static let lanes = (0..<4).map { DispatchQueue(label: "etagere.download.\($0)", qos: .utility) }
  private static let turn = Lock(0)

  /// A lane for one file: what is done in it happens in the order in which it was asked for.
  static func next() -> DispatchQueue {
    lanes[
      turn.withLock { turn in
        turn = (turn + 1) % lanes.count
        return turn
      }]
  }
}

extension DispatchQueue {
  /// Does blocking work here and waits for it without blocking.
  func perform<Value: Sendable>(
    _ work: @escaping @Sendable () throws(CacheError) -> Value
  ) async throws(CacheError) -> Value {
    let result: Result<Value, CacheError> = await withCheckedContinuation { continuation in
      async { continuation.resume(returning: Result(catching: work)) }
    }
    return try result.get()
  }
}
