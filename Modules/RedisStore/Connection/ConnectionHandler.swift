#if Redis
internal import CacheCore
internal import NIOCore

/// The part of a connection that runs on its event loop: it writes commands and assigns the replies to them in order.
final class ConnectionHandler: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer
  typealias OutboundOut = ByteBuffer

  private struct Waiting {
    let call: CommandQueue.Call
    var values: [RESPValue] = []

    var isComplete: Bool { values.count == call.replies.count }
  }

  private let queue: CommandQueue
  private let timeout: Duration
  private var reader = ReplyReader()
  private var waiting = CircularBuffer<Waiting>()
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
    for call in outgoing.calls { waiting.append(Waiting(call: call)) }
    for buffer in outgoing.buffers { context.write(wrapOutboundOut(buffer), promise: nil) }
    context.flush()
    setTimer()
  }

  // MARK: Replies

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    // Bytes may still arrive before the connection is closed.
    guard !hasFailed else { return }
    var failure: CacheError?
    // Taken out, because the reader calls this object.
    var reader = ReplyReader()
    swap(&reader, &self.reader)
    unwrapInboundIn(data).withUnsafeReadableBytes { bytes in
      do throws(CacheError) {
        try reader.feed(bytes, limit: { waiting.first?.call.replyLimit ?? RedisCommand.smallReply }) {
          value throws(CacheError) in try receive(value)
        }
      } catch {
        failure = error
      }
    }
    swap(&reader, &self.reader)
    guard let failure else { return }
    hasFailed = true
    end(with: queue.named(failure))
    context.close(promise: nil)
  }

  /// Assigns a reply to the first command that waits.
  ///
  /// - Throws: An error if no command waits. A server that has too many clients sends one reply before it closes the connection.
  private func receive(_ value: RESPValue) throws(CacheError) {
    guard !waiting.isEmpty else {
      if case .error(let message) = value { throw CacheError(.storeUnavailable, reason: "the server sent: \(message)") }
      throw CacheError(.storeUnavailable, reason: "the server sent a reply that no command waits for")
    }
    waiting[waiting.startIndex].values.append(value)
    guard waiting[waiting.startIndex].isComplete else { return }
    let first = waiting.removeFirst()
    queue.complete(first.call.size)
    first.call.replies.finish(.success(first.values))
  }

  // MARK: Timeout

  /// Every command has the same timeout, so the first one is always due first.
  private func setTimer() {
    guard timer == nil, let context, let first = waiting.first else { return }
    timer = context.eventLoop.assumeIsolated().scheduleTask(deadline: first.call.deadline) { [weak self] in self?.timeIsOver() }
  }

  private func timeIsOver() {
    timer = nil
    guard let first = waiting.first else { return }
    guard first.call.deadline <= .now() else { return setTimer() }
    queue.noteOverdue()
    end(with: queue.overdue(timeout))
    context?.close(mode: .all, promise: nil)
  }

  // MARK: The end

  private func end(with error: CacheError) {
    timer?.cancel()
    timer = nil
    let (unsent, reason) = queue.close(error)
    let lost = waiting.map(\.call.replies) + unsent.map(\.replies)
    waiting.removeAll()
    for replies in lost { replies.finish(.failure(reason)) }
  }
}
#endif
