#if Redis
internal import CacheCore

/// The replies to the commands of one caller, which waits for all of them.
final class PendingReplies: Sendable {
  private enum State {
    case unread
    case waiting(UnsafeContinuation<Result<[RESPValue], CacheError>, Never>)
    case done(Result<[RESPValue], CacheError>)
  }

  /// The number of commands.
  let count: Int
  private let state = Lock(State.unread)

  init(count: Int) { self.count = count }

  /// Ends the wait. Later calls have no effect.
  func finish(_ result: Result<[RESPValue], CacheError>) {
    let continuation: UnsafeContinuation<Result<[RESPValue], CacheError>, Never>? = state.withLock { state in
      switch state {
      case .done: return nil
      case .unread:
        state = .done(result)
        return nil
      case .waiting(let continuation):
        state = .done(result)
        return continuation
      }
    }
    continuation?.resume(returning: result)
  }

  /// Waits for the replies. Called once. A cancelled task stops waiting. The commands are sent nevertheless.
  func values() async throws(CacheError) -> [RESPValue] {
    let result = await withTaskCancellationHandler {
      // The state leaves `waiting` once, under the lock, so an unchecked continuation is safe.
      await withUnsafeContinuation { continuation in
        let result: Result<[RESPValue], CacheError>? = state.withLock { state in
          switch state {
          case .done(let result): return result
          case .waiting: preconditionFailure("the replies have a waiter")
          case .unread: state = .waiting(continuation)
          }
          return nil
        }
        if let result { continuation.resume(returning: result) }
      }
    } onCancel: {
      finish(.failure(.cancelled))
    }
    return try result.get()
  }
}
#endif
