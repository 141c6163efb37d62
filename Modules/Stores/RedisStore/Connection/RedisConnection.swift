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
#endif
