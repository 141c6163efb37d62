#if Redis
internal import CacheCore
internal import NIOCore

/// The part of a connection that runs on its event loop: it writes commands and assigns the replies to them in order.
final class RedisConnectionHandler: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer
  typealias OutboundOut = ByteBuffer

  private let queue: CommandQueue
  private let timeout: Duration
  private var reader = ReplyReader()
  /// The calls that have been sent, in order.
  private var waiting = CircularBuffer<CommandQueue.Call>()
  /// The replies to the first of them.
  private var values: [RESPValue] = []
  /// The calls that have all their replies. Their tasks are resumed together after all bytes have been read.
  private var complete: [(call: CommandQueue.Call, values: [RESPValue])] = []
  private var context: ChannelHandlerContext?
  private var timer: Scheduled<Void>?
  /// Whether the server has sent something that is no reply.
  private var hasFailed = false

  init(_ queue: CommandQueue, timeout: Duration) { (self.queue, self.timeout) = (queue, timeout) }

  func handlerAdded(context: ChannelHandlerContext) { self.context = context }

  func handlerRemoved(context: ChannelHandlerContext) {
    self.context = nil
    end(with: queue.lost("the connection was closed"))
  }

  func channelInactive(context: ChannelHandlerContext) {
    end(with: queue.lost("the server closed the connection"))
    context.fireChannelInactive()
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    end(with: queue.lost("\(error)"))
    context.close(promise: nil)
  }

  // MARK: Commands

  /// Sends the commands of the queue.
  func drain() {
    let outgoing = queue.takeOutgoing()
    guard let context else {
      for call in outgoing.calls { call.replies.finish(.failure(queue.lost("the connection was closed"))) }
      return
    }
    waiting.append(contentsOf: outgoing.calls)
    for buffer in outgoing.buffers { context.write(wrapOutboundOut(buffer), promise: nil) }
    context.flush()
    setTimer()
  }

  // MARK: Replies

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    // Bytes may still arrive before the connection is closed.
    guard !hasFailed else { return }
    var failure: CacheError?
    unwrapInboundIn(data).withUnsafeReadableBytes { bytes in
      var rest = bytes[...]
      do throws(CacheError) {
        while let value = try reader.next(in: &rest, limit: waiting.first?.replyLimit ?? RedisCommand.smallReply) {
          try receive(value)
        }
      } catch {
        failure = error
      }
    }
    guard let failure else { return resumeComplete() }
    hasFailed = true
    end(with: queue.named(failure))
    context.close(promise: nil)
  }

  /// Assigns a reply to the first command that waits.
  ///
  /// - Throws: An error if no command waits. A server that has too many clients sends one reply before it closes the connection.
  private func receive(_ value: RESPValue) throws(CacheError) {
    guard let call = waiting.first else {
      if case .error(let message) = value { throw CacheError(.storeUnavailable, reason: "the server sent: \(message)") }
      throw CacheError(.storeUnavailable, reason: "the server sent a reply that no command waits for")
    }
    values.append(value)
    guard values.count == call.replies.count else { return }
    waiting.removeFirst()
    complete.append((call, values))
    values = []
  }

  private func resumeComplete() {
    guard !complete.isEmpty else { return }
    queue.complete(complete.count, bytes: complete.reduce(0) { $0 + $1.call.size })
    for (call, values) in complete { call.replies.finish(.success(values)) }
    complete.removeAll(keepingCapacity: true)
  }

  // MARK: Timeout

  /// Every command has the same timeout, so the first one is always due first.
  private func setTimer() {
    guard timer == nil, let context, let first = waiting.first else { return }
    timer = context.eventLoop.assumeIsolated().scheduleTask(deadline: first.deadline) { [weak self] in self?.timeIsOver() }
  }

  private func timeIsOver() {
    timer = nil
    guard let first = waiting.first else { return }
    guard first.deadline <= .now() else { return setTimer() }
    queue.noteOverdue()
    end(with: queue.overdue(timeout))
    context?.close(mode: .all, promise: nil)
  }

  // MARK: The end

  private func end(with error: CacheError) {
    timer?.cancel()
    timer = nil
    resumeComplete()
    let (unsent, reason) = queue.close(error)
    let lost = Array(waiting) + unsent
    waiting.removeAll()
    for call in lost { call.replies.finish(.failure(reason)) }
  }
}
#endif
