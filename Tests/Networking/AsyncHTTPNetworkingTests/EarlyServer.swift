#if AsyncHTTP && Origin
import Foundation
import NIOCore
import NIOPosix
import Testing

/// A server that refuses a request at its first byte and reads no more. Only the last chunk marks the end of the response, and
/// the connection stays open.
final class EarlyServer: Sendable {
  let url: URL
  private let channel: any Channel

  private init(_ channel: any Channel, url: URL) {
    self.channel = channel
    self.url = url
  }

  /// - Parameter host: The address to listen on, in the form of a URL.
  static func start(on host: String = "127.0.0.1") async throws -> EarlyServer {
    let channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .serverChannelOption(.backlog, value: 16)
      .childChannelInitializer { channel in
        channel.eventLoop.makeCompletedFuture { try channel.pipeline.syncOperations.addHandler(Refusal()) }
      }
      .bind(host: host.filter { $0 != "[" && $0 != "]" }, port: 0).get()
    let port = try #require(channel.localAddress?.port)
    return EarlyServer(channel, url: try #require(URL(string: "http://\(host):\(port)/")))
  }

  func stop() async throws { try await channel.close() }

  private final class Refusal: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private var hasResponded = false

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
      guard !hasResponded else { return }
      hasResponded = true
      let response = "HTTP/1.1 413 Content Too Large\r\nTransfer-Encoding: chunked\r\n\r\n8\r\ntoo much\r\n0\r\n\r\n"
      context.writeAndFlush(wrapOutboundOut(ByteBuffer(string: response)), promise: nil)
      _ = context.channel.setOption(.autoRead, value: false)
    }
  }
}
#endif
