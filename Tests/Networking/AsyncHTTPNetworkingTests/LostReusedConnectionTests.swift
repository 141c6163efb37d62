#if AsyncHTTP
import AsyncHTTPClient
@testable import AsyncHTTPNetworking
import CacheCore
import Foundation
import NIOCore
import NIOEmbedded
import NIOHTTP1
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

  /// What happens on a connection, in order.
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
}
#endif
