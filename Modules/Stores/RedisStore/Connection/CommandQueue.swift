#if Redis
internal import CacheCore
internal import NIOCore

/// The commands that wait for their connection's event loop, with the limit of pending commands.
///
/// Callers on any thread add commands. The event loop takes all of them at once, so that many commands cost one wake-up and one
/// system call.
final class CommandQueue: Sendable {
  /// A caller that waits for replies.
  struct Call: Sendable {
    let replies: PendingReplies
    let deadline: NIODeadline
    /// An upper bound for the size of its commands in bytes.
    let size: Int
    /// The maximum size of each reply in bytes.
    let replyLimit: Int
  }

  /// The calls that have not been sent.
  struct Outgoing: Sendable {
    var calls: [Call] = []
    /// Their commands in the same order. A buffer has the commands of one or several calls.
    var buffers: [ByteBuffer] = []
  }

  private struct State {
    var outgoing = Outgoing()
    var isScheduled = false
    /// The number of callers that wait for replies.
    var pending = 0
    /// The number of bytes that they have sent or will send.
    var pendingBytes = 0
    var isOverdue = false
    var end: CacheError?
    var closeAction: (@Sendable (CacheError) -> Void)?
  }

  private static let byteLimit = 64 << 20
  /// The size in bytes up to which commands share a buffer, so that a small command costs no allocation and no write of its own.
  private static let sharedSize = 4_096

  /// The name of the server in errors.
  private let server: String
  private let limit: Int
  private let state = Lock(State())

  init(server: String, limit: Int) { (self.server, self.limit) = (server, limit) }

  /// Adds the commands of a call.
  ///
  /// - Returns: Whether the caller must schedule the event loop.
  func add(_ commands: [RedisCommand], _ call: Call) throws(CacheError) -> Bool {
    var own: ByteBuffer?
    if call.size > Self.sharedSize { own = Self.buffer(of: commands, capacity: call.size) }
    return try state.withLock { state throws(CacheError) in
      if let end = state.end { throw end }
      guard state.pending < limit else {
        throw CacheError(.overloaded, reason: "\(limit) calls wait for a reply of the Redis server \(server)")
      }
      // A single call of any size is accepted.
      guard state.pending == 0 || state.pendingBytes + call.size <= Self.byteLimit else {
        throw CacheError(.overloaded, reason: "\(Self.byteLimit) bytes wait for the Redis server \(server)")
      }
      state.pending += 1
      state.pendingBytes += call.size
      state.outgoing.calls.append(call)
      if let own {
        state.outgoing.buffers.append(own)
      } else if let last = state.outgoing.buffers.indices.last,
        state.outgoing.buffers[last].readableBytes + call.size <= Self.sharedSize
      {
        for command in commands { command.encode(into: &state.outgoing.buffers[last]) }
      } else {
        state.outgoing.buffers.append(Self.buffer(of: commands, capacity: Self.sharedSize))
      }
      defer { state.isScheduled = true }
      return !state.isScheduled
    }
  }

  private static func buffer(of commands: [RedisCommand], capacity: Int) -> ByteBuffer {
    var buffer = ByteBufferAllocator().buffer(capacity: capacity)
    for command in commands { command.encode(into: &buffer) }
    return buffer
  }

  func takeOutgoing() -> Outgoing {
    state.withLock { state in
      state.isScheduled = false
      defer { state.outgoing = Outgoing() }
      return state.outgoing
    }
  }

  /// Records that some calls have their replies.
  ///
  /// - Parameter bytes: The sum of their sizes.
  func complete(_ count: Int, bytes: Int) {
    state.withLock { state in
      state.pending -= count
      state.pendingBytes -= bytes
    }
  }

  /// Records that a reply did not come in time.
  func noteOverdue() { state.withLock { $0.isOverdue = true } }

  var isOverdue: Bool { state.withLock { $0.isOverdue } }

  /// Refuses further commands. The first error counts.
  ///
  /// - Returns: The calls that were not sent, and the error.
  func close(_ error: CacheError) -> ([Call], CacheError) {
    let (calls, error, action) = state.withLock { state in
      let action = state.end == nil ? state.closeAction : nil
      state.closeAction = nil
      state.end = state.end ?? error
      defer { state.outgoing = Outgoing() }
      return (state.outgoing.calls, state.end ?? error, action)
    }
    action?(error)
    return (calls, error)
  }

  /// Sets the action that runs once, when the queue is closed or now if it is.
  func onClose(_ action: @escaping @Sendable (CacheError) -> Void) {
    let end = state.withLock { state in
      if state.end == nil { state.closeAction = action }
      return state.end
    }
    if let end { action(end) }
  }

  // MARK: Errors

  func lost(_ reason: String) -> CacheError {
    CacheError(.storeUnavailable, reason: "the connection to the Redis server \(server) was lost: \(reason)")
  }

  func named(_ error: CacheError) -> CacheError {
    CacheError(error.code, reason: "the Redis server \(server): \(error.reason)")
  }

  func overdue(_ timeout: Duration) -> CacheError {
    CacheError(.storeUnavailable, reason: "the Redis server \(server) did not reply within \(timeout)")
  }
}

/// The replies to the commands of one caller, which waits for all of them.
final class PendingReplies: Sendable {
  private enum State {
    case unread
    case waiting(Resumption<Result<[RESPValue], CacheError>>)
    case done(Result<[RESPValue], CacheError>)
  }

  /// The number of commands.
  let count: Int
  private let state = Lock(State.unread)

  init(count: Int) { self.count = count }

  /// Ends the wait. Later calls have no effect.
  func finish(_ result: Result<[RESPValue], CacheError>) {
    let continuation: Resumption<Result<[RESPValue], CacheError>>? = state.withLock { state in
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
      await withResumption { continuation in
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
