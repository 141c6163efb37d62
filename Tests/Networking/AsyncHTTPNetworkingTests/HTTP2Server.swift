#if AsyncHTTP
import CacheCore
import Foundation
import NIOCore
import NIOPosix
import NIOSSL
import Testing

/// A server with TLS that sends HTTP/2 frames as a test writes them, so that they need not be valid (RFC 9113 §4.1).
final class HTTP2Server: Sendable {
  /// A frame of the response.
  enum Frame: Sendable {
    /// A header block of these fields.
    case headers([(String, String)], endsStream: Bool = false)
    case data(String, endsStream: Bool = false)
    /// A frame of any type, of the stream or of the connection.
    case any([UInt8], type: UInt8, flags: UInt8, isOfStream: Bool)
  }

  /// The header blocks of the requests, as they were received.
  private final class Blocks: Sendable {
    let all = Lock<[[UInt8]]>([])
  }

  let url: URL
  private let channel: any Channel
  private let blocks: Blocks

  private init(_ channel: any Channel, url: URL, _ blocks: Blocks) {
    self.channel = channel
    self.url = url
    self.blocks = blocks
  }

  /// The header blocks of the requests, as they were received.
  var headerBlocks: [[UInt8]] { blocks.all.withLock { $0 } }

  /// Starts a server that sends the frames in response to each request, and then may close the connection.
  static func start(_ frames: [Frame], closes: Bool = false) async throws -> HTTP2Server {
    var tls = TLSConfiguration.makeServerConfiguration(
      certificateChain: try NIOSSLCertificate.fromPEMBytes(Array(certificate.utf8)).map { .certificate($0) },
      privateKey: .privateKey(try NIOSSLPrivateKey(bytes: Array(key.utf8), format: .pem)))
    tls.applicationProtocols = ["h2"]
    let context = try NIOSSLContext(configuration: tls)
    let blocks = Blocks()
    let channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .serverChannelOption(.backlog, value: 16)
      .childChannelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          try channel.pipeline.syncOperations.addHandler(NIOSSLServerHandler(context: context))
          try channel.pipeline.syncOperations.addHandler(Responder(frames, closes: closes, blocks))
        }
      }
      .bind(host: "127.0.0.1", port: 0).get()
    let port = try #require(channel.localAddress?.port)
    return HTTP2Server(channel, url: try #require(URL(string: "https://localhost:\(port)/")), blocks)
  }

  func stop() async throws { try await channel.close() }

  private final class Responder: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let frames: [Frame]
    private let closes: Bool
    private let blocks: Blocks
    private var received = ByteBuffer()
    private var hasPreface = false

    init(_ frames: [Frame], closes: Bool, _ blocks: Blocks) { (self.frames, self.closes, self.blocks) = (frames, closes, blocks) }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
      received.writeImmutableBuffer(unwrapInboundIn(data))
      if !hasPreface {
        guard received.readSlice(length: 24) != nil else { return }
        hasPreface = true
        write([], type: 4, flags: 0, stream: 0, context)
      }
      while let head = received.getBytes(at: received.readerIndex, length: 9) {
        let length = Int(head[0]) << 16 | Int(head[1]) << 8 | Int(head[2])
        guard let frame = received.readBytes(length: 9 + length) else { break }
        let stream = head[5...].reduce(0) { $0 << 8 | UInt32($1) }
        // The client's settings are acknowledged, and its header block is the request.
        if head[3] == 4, head[4] & 1 == 0 { write([], type: 4, flags: 1, stream: 0, context) }
        if head[3] == 1 {
          blocks.all.withLock { $0.append(Array(frame.dropFirst(9))) }
          respond(on: stream, context)
          context.flush()
          if closes { return context.close(promise: nil) }
        }
      }
      context.flush()
    }

    private func respond(on stream: UInt32, _ context: ChannelHandlerContext) {
      for frame in frames {
        switch frame {
        case .headers(let fields, let endsStream):
          // Literals without indexing and without Huffman coding (RFC 7541 §6.2.2).
          let block: [UInt8] = fields.flatMap { name, value in [UInt8(0)] + Self.literal(name) + Self.literal(value) }
          write(block, type: 1, flags: endsStream ? 5 : 4, stream: stream, context)
        case .data(let text, let endsStream):
          write(Array(text.utf8), type: 0, flags: endsStream ? 1 : 0, stream: stream, context)
        case .any(let payload, let type, let flags, let isOfStream):
          write(payload, type: type, flags: flags, stream: isOfStream ? stream : 0, context)
        }
      }
    }

    private static func literal(_ text: String) -> [UInt8] { [UInt8(text.utf8.count)] + Array(text.utf8) }

    private func write(_ payload: [UInt8], type: UInt8, flags: UInt8, stream: UInt32, _ context: ChannelHandlerContext) {
      var buffer = ByteBuffer()
      buffer.writeBytes([UInt8(payload.count >> 16), UInt8(payload.count >> 8 & 0xFF), UInt8(payload.count & 0xFF), type, flags])
      buffer.writeInteger(stream)
      buffer.writeBytes(payload)
      context.write(wrapOutboundOut(buffer), promise: nil)
    }
  }

  // For "localhost", signed by itself, until 2126.
  private static let certificate = """
    -----BEGIN CERTIFICATE-----
    MIIBmzCCAUGgAwIBAgIUPOPbT/YExp+fauAq3n5HHSTH3zUwCgYIKoZIzj0EAwIw
    FDESMBAGA1UEAwwJbG9jYWxob3N0MCAXDTI2MTEyNzE5MDYyNVoYDzIxMjYxMTAz
    MTkwNjI1WjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjO
    PQMBBwNCAAQF8lOzNQFpF8i3z5++wWRsCGU1l/DG0dWepfhfjX4fBGH76jfKjabK
    Z0JqY5OtUTVcdIuyKNizY2PrZ3QVnmlgo28wbTAdBgNVHQ4EFgQU/LxdGMDCXIv4
    dgBjS9ay+/AWRHowHwYDVR0jBBgwFoAU/LxdGMDCXIv4dgBjS9ay+/AWRHowDwYD
    VR0TAQH/BAUwAwEB/zAaBgNVHREEEzARgglsb2NhbGhvc3SHBH8AAAEwCgYIKoZI
    zj0EAwIDSAAwRQIhAPSkGefA+HmCV381Fi7FSxuQ0k5VLvLyD/0hcsqyFaxOAiB0
    wJ22jkZMMI2m9Kj2bGAeqx0wD/7F7/nvv12l8uQ+ng==
    -----END CERTIFICATE-----
    """
  private static let key = """
    -----BEGIN PRIVATE KEY-----
    MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgylHewkj9+ZN2yE7z
    DXjMEPF508UyyDVfHCuWbaozP9qhRANCAAQF8lOzNQFpF8i3z5++wWRsCGU1l/DG
    0dWepfhfjX4fBGH76jfKjabKZ0JqY5OtUTVcdIuyKNizY2PrZ3QVnmlg
    -----END PRIVATE KEY-----
    """
}
#endif
