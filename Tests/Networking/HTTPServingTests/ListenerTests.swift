#if Server
import HTTPTypes
import NIOCore
import NIOPosix
import Testing

@testable import HTTPServing

@Suite("The listening socket and the limit of descriptors", .timeLimit(.minutes(30)))
struct ListenerTests {
  /// Opens a port that sends a byte to each client. It accepts nothing until `autoRead` is set.
  private static func server() async throws -> any Channel {
    let server = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .serverChannelOption(.autoRead, value: false)
      .childChannelInitializer { channel in
        channel.eventLoop.makeCompletedFuture { try channel.pipeline.syncOperations.addHandler(Greeting()) }
      }
      .bind(host: "127.0.0.1", port: 0).get()
    try await server.eventLoop.submit {
      try server.pipeline.syncOperations.addHandler(ListeningHandler(), position: .first)
    }.get()
    return server
  }

  /// Connects, and returns a future of the first bytes that arrive.
  private static func connect(to server: any Channel) async throws -> EventLoopFuture<ByteBuffer> {
    let group = MultiThreadedEventLoopGroup.singleton
    let promise = group.any().makePromise(of: ByteBuffer.self)
    _ = try await ClientBootstrap(group: group)
      .channelInitializer { channel in
        channel.eventLoop.makeCompletedFuture { try channel.pipeline.syncOperations.addHandler(FirstBytes(promise)) }
      }
      .connect(to: try #require(server.localAddress)).get()
    return promise.futureResult
  }

  private final class Greeting: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    func channelActive(context: ChannelHandlerContext) { context.channel.writeAndFlush(ByteBuffer(string: "a"), promise: nil) }
  }

  private final class FirstBytes: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    private let promise: EventLoopPromise<ByteBuffer>

    init(_ promise: EventLoopPromise<ByteBuffer>) { self.promise = promise }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
      promise.succeed(unwrapInboundIn(data))
      context.close(promise: nil)
    }

    func channelInactive(context: ChannelHandlerContext) { promise.fail(ChannelError.eof) }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { promise.fail(error) }
  }

  @Test("after an error the socket is not registered for a while, and then accepts again", arguments: [EMFILE, ENFILE])
  func descriptorsExhausted(_ number: CInt) async throws {
    let server = try await Self.server()
    let isReading = try await server.eventLoop.submit {
      try server.syncOptions?.setOption(.autoRead, value: true)
      server.pipeline.fireErrorCaught(IOError(errnoCode: number, reason: "accept"))
      return try server.syncOptions?.getOption(.autoRead)
    }.get()
    #expect(isReading == false)
    #expect(try await Self.connect(to: server).get() == ByteBuffer(string: "a"))
    #expect(try await server.getOption(.autoRead).get())
    try await server.close().get()
  }

  /// Closes the channel for any error, as a server does.
  private final class ClosingHandler: ChannelInboundHandler {
    typealias InboundIn = any Channel

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
  }

  @Test("a connection that ends before it is accepted neither pauses nor ends the socket")
  func abortedConnection() async throws {
    let server = try await Self.server()
    let isReading = try await server.eventLoop.submit {
      try server.pipeline.syncOperations.addHandler(ClosingHandler())
      try server.syncOptions?.setOption(.autoRead, value: true)
      server.pipeline.fireErrorCaught(IOError(errnoCode: ECONNABORTED, reason: "accept"))
      return try server.syncOptions?.getOption(.autoRead)
    }.get()
    #expect(isReading == true && server.isActive)
    try await server.close().get()
  }

  @Test(
    "connections leave descriptors for files and origins",
    arguments: [
      (1_048_576, 10_000, 256, 2, 10_000), (1_024, 10_000, 256, 1, 768), (1_024, 10_000, 256, 2, 384), (256, 1_000, 356, 1, 128),
      (1_024, 5, 256, 2, 5), (3, 10, 9, 2, 1), (0, 10, 9, 2, 1), (Int.max, 10, 9, 2, 10),
    ])
  func limit(_ limit: Int, _ wanted: Int, _ reserved: Int, _ each: Int, _ connections: Int) {
    #expect(DescriptorLimit.connections(within: limit, wanted: wanted, reserved: reserved, each: each) == connections)
  }

  @Test("the soft limit is raised once")
  func raise() {
    let limit = DescriptorLimit.raise()
    #expect(limit > 0 && limit == DescriptorLimit.raise())
  }
}
#endif
