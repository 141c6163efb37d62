#if Redis
internal import CacheCore
internal import NIOCore
internal import NIOPosix
internal import NIOSSL

/// A connection to one server, on which commands are pipelined.
final class RedisConnection: Sendable {
  private let channel: any Channel
  private let handler: NIOLoopBound<RedisConnectionHandler>
  private let queue: CommandQueue
  private let timeout: TimeAmount

  private init(
    _ channel: any Channel, _ handler: NIOLoopBound<RedisConnectionHandler>, _ queue: CommandQueue, timeout: TimeAmount
  ) {
    (self.channel, self.handler, self.queue, self.timeout) = (channel, handler, queue, timeout)
  }

  /// The longest timeout, because the sum of a deadline and SwiftNIO's longest time overflows.
  private static let longestTimeout = Duration.seconds(86_400)

  /// Connects to a server. The connection is not authenticated yet.
  static func connect(
    to endpoint: RedisEndpoint, _ configuration: RedisCache.Configuration, tls: NIOSSLContext?, on loop: any EventLoop
  ) async throws(CacheError) -> RedisConnection {
    let queue = CommandQueue(server: endpoint.description, limit: configuration.pendingCallLimit)
    let timeout = min(configuration.timeout, longestTimeout)
    let bootstrap = ClientBootstrap(group: loop)
      .connectTimeout(TimeAmount(min(configuration.connectTimeout, longestTimeout)))
      .channelOption(.recvAllocator, value: AdaptiveRecvByteBufferAllocator(minimum: 1_024, initial: 16_384, maximum: 262_144))
      .channelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          if let tls {
            try channel.pipeline.syncOperations.addHandler(
              NIOSSLClientHandler(context: tls, serverHostname: endpoint.serverName))
          }
          try channel.pipeline.syncOperations.addHandler(RedisConnectionHandler(queue, timeout: timeout))
        }
      }
    do {
      let channel =
        switch endpoint {
        case .host(let host, let port):
          try await bootstrap.channelOption(.tcpOption(.tcp_nodelay), value: 1).connect(host: host, port: port).get()
        case .socket(let path): try await bootstrap.connect(unixDomainSocketPath: path).get()
        }
      let handler = try await channel.eventLoop.submit {
        NIOLoopBound(
          try channel.pipeline.syncOperations.handler(type: RedisConnectionHandler.self), eventLoop: channel.eventLoop)
      }.get()
      return RedisConnection(channel, handler, queue, timeout: TimeAmount(timeout))
    } catch {
      throw CacheError(
        .storeUnavailable, reason: "cannot connect to the Redis server \(endpoint): \(error)", underlying: error)
    }
  }

  /// Sends commands together and returns their replies in order. An error of the server is a reply.
  ///
  /// - Throws: `CacheError.Code.overloaded` if too many commands are pending, or the error that ended the connection.
  func send(_ commands: [RedisCommand]) async throws(CacheError) -> [RESPValue] {
    let replies = PendingReplies(count: commands.count)
    let size = commands.reduce(0) { $0 + $1.encodedCountLimit }
    let replyLimit = commands.reduce(0) { max($0, $1.replyLimit) }
    let mustSchedule = try queue.add(
      commands, .init(replies: replies, deadline: .now() + timeout, size: size, replyLimit: replyLimit))
    if mustSchedule { channel.eventLoop.execute { [handler] in handler.value.drain() } }
    return try await replies.values()
  }

  /// Whether the connection was closed because a reply did not come in time.
  var isOverdue: Bool { queue.isOverdue }

  /// Sets the action that runs once, when the connection has ended.
  func onClose(_ action: @escaping @Sendable (CacheError) -> Void) { queue.onClose(action) }

  func waitUntilClosed() async { try? await channel.closeFuture.get() }

  /// Closes the connection. Callers that wait for replies get `error`.
  func close(_ error: CacheError) {
    let (unsent, reason) = queue.close(error)
    for call in unsent { call.replies.finish(.failure(reason)) }
    channel.close(mode: .all, promise: nil)
  }
}

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
