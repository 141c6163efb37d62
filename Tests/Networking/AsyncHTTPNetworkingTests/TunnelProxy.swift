#if AsyncHTTP && Origin
import CacheCore
import Foundation
import NIOCore
import NIOPosix
import Testing

/// A proxy that creates tunnels (`CONNECT`, RFC 9110 §9.3.6). All of them lead to one local port, regardless of the requested
/// host.
final class TunnelProxy: Sendable {
  /// The heads of the requests for a tunnel, and the first bytes sent through each.
  final class Log: Sendable {
    private let state = Lock((heads: [String](), firsts: [[UInt8]]()))

    var heads: [String] { state.withLock { $0.heads } }
    var firstBytes: [[UInt8]] { state.withLock { $0.firsts } }

    func note(head: String) { state.withLock { $0.heads.append(head) } }
    func note(first bytes: [UInt8]) { state.withLock { $0.firsts.append(bytes) } }
  }

  let log: Log
  let port: Int
  private let channel: any Channel

  private init(_ channel: any Channel, port: Int, log: Log) { (self.channel, self.port, self.log) = (channel, port, log) }

  /// - Parameters:
  ///   - destination: The port at the other end of the tunnels.
  ///   - credential: The required value of `Proxy-Authorization`, or `nil` for none.
  static func start(to destination: Int, credential: String? = nil) async throws -> TunnelProxy {
    let log = Log()
    let channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .childChannelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          try channel.pipeline.syncOperations.addHandler(Entrance(to: destination, credential: credential, log: log))
        }
      }
      .bind(host: "127.0.0.1", port: 0).get()
    return TunnelProxy(channel, port: try #require(channel.localAddress?.port), log: log)
  }

  func stop() async throws { try await channel.close() }

  /// Reads the request for a tunnel, creates the tunnel, and then passes bytes on.
  private final class Entrance: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private enum Phase { case head, connecting, open(any Channel), refused }

    private let destination: Int
    private let credential: String?
    private let log: Log
    private var phase = Phase.head
    private var waiting = ByteBuffer()
    private var hasPassed = false

    init(to destination: Int, credential: String?, log: Log) {
      (self.destination, self.credential, self.log) = (destination, credential, log)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
      var bytes = unwrapInboundIn(data)
      if case .open(let exit) = phase {
        if !hasPassed { log.note(first: Array(bytes.readableBytesView)) }
        hasPassed = true
        return exit.writeAndFlush(bytes, promise: nil)
      }
      waiting.writeBuffer(&bytes)
      guard case .head = phase else { return }
      let text = String(buffer: waiting)
      guard let end = text.range(of: "\r\n\r\n") else { return }
      let head = String(text[..<end.lowerBound])
      waiting.moveReaderIndex(forwardBy: head.utf8.count + 4)
      log.note(head: head)
      if let credential, !head.lowercased().contains("proxy-authorization: \(credential.lowercased())") {
        phase = .refused
        let response = "HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic\r\nContent-Length: 0\r\n\r\n"
        return context.writeAndFlush(wrapOutboundOut(ByteBuffer(string: response)), promise: nil)
      }
      phase = .connecting
      connect(context)
    }

    private func connect(_ context: ChannelHandlerContext) {
      let entrance = context.channel
      let here = NIOLoopBound((handler: self, context: context), eventLoop: context.eventLoop)
      ClientBootstrap(group: context.eventLoop)
        .channelInitializer { channel in
          channel.eventLoop.makeCompletedFuture { try channel.pipeline.syncOperations.addHandler(Exit(to: entrance)) }
        }
        .connect(host: "127.0.0.1", port: destination)
        .whenComplete { result in
          switch result {
          case .failure: entrance.close(promise: nil)
          case .success(let exit): here.value.handler.opened(here.value.context, exit)
          }
        }
    }

    private func opened(_ context: ChannelHandlerContext, _ exit: any Channel) {
      phase = .open(exit)
      context.writeAndFlush(wrapOutboundOut(ByteBuffer(string: "HTTP/1.1 200 Connection Established\r\n\r\n")), promise: nil)
      if waiting.readableBytes > 0 { exit.writeAndFlush(waiting, promise: nil) }
    }

    func channelInactive(context: ChannelHandlerContext) {
      if case .open(let exit) = phase { exit.close(promise: nil) }
    }
  }

  /// Passes on the bytes from the other end.
  private final class Exit: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    private let entrance: any Channel

    init(to entrance: any Channel) { self.entrance = entrance }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
      entrance.writeAndFlush(unwrapInboundIn(data), promise: nil)
    }

    func channelInactive(context: ChannelHandlerContext) { entrance.close(promise: nil) }
  }
}
#endif
