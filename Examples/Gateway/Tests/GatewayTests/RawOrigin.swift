import CacheTesting
import NIOCore
import NIOPosix
import Testing

/// An origin that records the received bytes, and responds to each head with the bytes that a test gives.
final class RawOrigin: Sendable {
  struct State: Sendable {
    var received = ""
    var heads: [String] = []
    var connections = 0
  }

  let port: Int
  private let channel: any Channel
  private let state: WatchedState<State>

  private init(_ channel: any Channel, port: Int, _ state: WatchedState<State>) {
    (self.channel, self.port, self.state) = (channel, port, state)
  }

  /// - Parameters:
  ///   - answer: The bytes that are sent when a request's head has arrived.
  ///   - closes: Whether the connection closes after them.
  ///   - limit: The number of requests of a connection that get a response. A further request closes it.
  static func start(answer: String, closes: Bool = false, limit: Int = .max) async throws -> RawOrigin {
    let state = WatchedState(State())
    let channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .serverChannelOption(.backlog, value: 64)
      .childChannelOption(.allowRemoteHalfClosure, value: true)
      .childChannelInitializer { channel in
        state.update { $0.connections += 1 }
        return channel.eventLoop.makeCompletedFuture {
          try channel.pipeline.syncOperations.addHandler(
            Answering(state, ByteBuffer(string: answer), closes: closes, limit: limit))
        }
      }
      .bind(host: "127.0.0.1", port: 0).get()
    return RawOrigin(channel, port: try #require(channel.localAddress?.port), state)
  }

  /// The received heads, each without the empty line at its end.
  var heads: [String] { state.read { $0.heads } }

  /// The number of accepted connections.
  var connections: Int { state.read { $0.connections } }

  func stop() async { try? await channel.close() }

  private final class Answering: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let state: WatchedState<State>
    private let answer: ByteBuffer
    private let closes: Bool
    private var left: Int
    private var unread = ""

    init(_ state: WatchedState<State>, _ answer: ByteBuffer, closes: Bool, limit: Int) {
      (self.state, self.answer, self.closes, left) = (state, answer, closes, limit)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
      unread += String(buffer: unwrapInboundIn(data))
      while let end = unread.firstRange(of: "\r\n\r\n") {
        let head = String(unread[..<end.lowerBound])
        unread = String(unread[end.upperBound...])
        state.update { $0.heads.append(head) }
        guard left > 0 else { return context.close(promise: nil) }
        left -= 1
        context.writeAndFlush(wrapOutboundOut(answer), promise: nil)
        if closes { context.close(promise: nil) }
      }
    }
  }
}
