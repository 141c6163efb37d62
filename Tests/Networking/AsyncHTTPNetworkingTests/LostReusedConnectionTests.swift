#if AsyncHTTP
import AsyncHTTPClient
@testable import AsyncHTTPNetworking
import CacheCore
import Foundation
import HTTPTypes
import NIOCore
import NIOEmbedded
import NIOHTTP1
import NIOPosix
import Testing

@Suite("Loss of a reused connection")
struct LostReusedConnectionTests {
  /// Collects the errors at the end of a pipeline, where async-http-client is.
  private final class Errors: ChannelInboundHandler {
    typealias InboundIn = HTTPClientResponsePart

    private(set) var all: [any Error] = []

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {}

    func errorCaught(context: ChannelHandlerContext, error: any Error) { all.append(error) }
  }

  /// An event on a connection.
  enum Step {
    case request, response, halfHead, interim, lost, closed
  }

  @Test(
    "a loss is reported if the connection had served a request, and nothing of the response has arrived",
    arguments: [
      ([.request, .response, .request, .closed], true),
      ([.request, .response, .request, .lost], true),
      ([.request, .response, .request, .lost, .closed], true),
      ([.request, .response, .request, .response, .request, .closed], true),
      ([.request, .closed], false),
      ([.request, .lost], false),
      ([.request, .halfHead, .closed], false),
      ([.request, .response, .closed], false),
      ([.request, .response, .lost], false),
      ([.request, .response, .request, .halfHead, .closed], false),
      ([.request, .response, .request, .halfHead, .lost], false),
      ([.request, .response, .request, .interim, .closed], false),
      ([.request, .response, .request, .response, .closed], false),
    ] as [([Step], Bool)])
  func losses(steps: [Step], isReported: Bool) throws {
    let errors = Errors()
    let channel = EmbeddedChannel()
    let pipeline = channel.pipeline.syncOperations
    try pipeline.addHTTPClientHandlers()
    try ResponseGuard.install(in: channel)
    try LostReusedConnection.reportLosses(of: channel)
    try pipeline.addHandler(errors)
    try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
    for step in steps {
      switch step {
      case .request:
        try channel.writeOutbound(HTTPClientRequestPart.head(HTTPRequestHead(version: .http1_1, method: .GET, uri: "/")))
        try channel.writeOutbound(HTTPClientRequestPart.end(nil))
      case .response: try channel.writeInbound(ByteBuffer(string: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"))
      case .halfHead: try channel.writeInbound(ByteBuffer(string: "HTT"))
      case .interim: try channel.writeInbound(ByteBuffer(string: "HTTP/1.1 103 Early Hints\r\n\r\n"))
      case .lost: channel.pipeline.fireErrorCaught(IOError(errnoCode: ECONNRESET, reason: "read"))
      case .closed: channel.close(promise: nil)
      }
    }
    let losses = errors.all.filter { $0 is LostReusedConnection }
    #expect(losses.count == (isReported ? 1 : 0), "\(errors.all)")
    for loss in losses {
      #expect(CacheError(clientError: loss).code == .connectionLost)
      // The user sees the error of the client.
      #expect(!(CacheError(clientError: loss).underlying is LostReusedConnection))
    }
  }

  @Test("an error that is no loss is passed on")
  func otherErrors() throws {
    let errors = Errors()
    let channel = EmbeddedChannel()
    let pipeline = channel.pipeline.syncOperations
    try pipeline.addHTTPClientHandlers()
    try LostReusedConnection.reportLosses(of: channel)
    try pipeline.addHandler(errors)
    try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
    for _ in 0..<2 {
      try channel.writeOutbound(HTTPClientRequestPart.head(HTTPRequestHead(version: .http1_1, method: .GET, uri: "/")))
      try channel.writeOutbound(HTTPClientRequestPart.end(nil))
    }
    channel.pipeline.fireErrorCaught(HTTPClientError.readTimeout)
    #expect(errors.all.count == 1 && errors.all.first as? HTTPClientError == .readTimeout)
  }

  @Test("requests at once over connections that the server closes at their second request are all sent again")
  func requestsAtOnce() async throws {
    for _ in 0..<20 {
      let server = try await OneRequestServer.start()
      // Each request can meet all eight connections, and then needs a new one.
      let downloader = try AsyncHTTPDownloader(configuration: .init { $0.connectionsPerHost = OneRequestServer.count })
      for count in [OneRequestServer.count, 4, 4, 4] {
        try await withThrowingTaskGroup(of: Void.self) { group in
          for _ in 0..<count {
            group.addTask {
              let response = try await downloader.download(DownloadRequest(head: HTTPRequest(resource: server.url)))
              #expect(try await response.body.collect() == Data("ok".utf8))
            }
          }
          try await group.waitForAll()
        }
      }
      #expect(server.lost > 0)
      await downloader.close()
      try await server.stop()
    }
  }
}

/// A server that closes each of its first connections when a second request arrives on it. Later connections stay open.
private final class OneRequestServer: Sendable {
  /// The number of these connections. Their first requests get responses when all of them have arrived.
  static let count = 8

  private struct Counts {
    var connections = 0
    var waiting: [any Channel] = []
    var lost = 0
  }

  private final class State: Sendable {
    let counts = Lock(Counts())
  }

  let url: URL
  private let channel: any Channel
  private let state: State

  /// The number of requests at which a connection was closed.
  var lost: Int { state.counts.withLock { $0.lost } }

  private init(_ channel: any Channel, _ url: URL, _ state: State) {
    (self.channel, self.url, self.state) = (channel, url, state)
  }

  static func start() async throws -> OneRequestServer {
    let state = State()
    let channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .serverChannelOption(.backlog, value: 64)
      .childChannelInitializer { channel in
        channel.eventLoop.makeCompletedFuture { try channel.pipeline.syncOperations.addHandler(Handler(state)) }
      }
      .bind(host: "127.0.0.1", port: 0).get()
    let port = try #require(channel.localAddress?.port)
    return OneRequestServer(channel, try #require(URL(string: "http://127.0.0.1:\(port)/")), state)
  }

  func stop() async throws { try await channel.close() }

  private final class Handler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let state: State
    private var requests = 0
    private var isFirst = false

    init(_ state: State) { self.state = state }

    /// A request without a body arrives in one piece.
    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
      requests += 1
      guard requests > 1 || !begin(context.channel) else { return }
      guard !isFirst else {
        state.counts.withLock { $0.lost += 1 }
        return context.close(promise: nil)
      }
      Self.respond(context.channel)
    }

    /// Returns whether the response is sent later or by this call.
    private func begin(_ channel: any Channel) -> Bool {
      let ready: [any Channel]? = state.counts.withLock { counts in
        counts.connections += 1
        guard counts.connections <= OneRequestServer.count else { return nil }
        counts.waiting.append(channel)
        return counts.connections == OneRequestServer.count ? counts.waiting : []
      }
      isFirst = ready != nil
      for channel in ready ?? [] { Self.respond(channel) }
      return isFirst
    }

    private static func respond(_ channel: any Channel) {
      let response = ByteBuffer(string: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
      channel.writeAndFlush(response, promise: nil)
    }
  }
}
#endif
